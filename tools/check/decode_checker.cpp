#include "decode_checker.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace attnjit::check {
namespace {

std::string find_failure(const DecodeCheckResult& result, const Tolerance& tolerance) {
  const Comparison& comparison = result.comparison;
  if (comparison.mismatches > 0) {
    return fmt::format("{} values are NaN, unwritten, or not finite where the reference is",
                       comparison.mismatches);
  }
  if (comparison.worst_excess > 1) {
    return fmt::format("an output is off by {:.2f} times its tolerance", comparison.worst_excess);
  }
  if (comparison.worst_lse_excess > 1) {
    return fmt::format("an LSE is off by {:.2f} times its tolerance", comparison.worst_lse_excess);
  }
  if (result.cosine_distance > tolerance.cosine_distance) {
    return fmt::format("the cosine distance {:.2e} exceeds {:.0e}", result.cosine_distance,
                       tolerance.cosine_distance);
  }
  return "";
}

// Lengths as they were some steps before the run.
std::vector<int> earlier_lengths(std::vector<int> lengths) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = i % 2 == 0 ? lengths[i] / 2 : lengths[i] + 700;
  }
  return lengths;
}

}  // namespace

DecodeChecker::DecodeChecker(AttentionRuntime& runtime, int device)
    : runtime_(runtime),
      stream_(device),
      kernels_(load_check_kernels(runtime.provider(), device)) {}

void DecodeChecker::run(DecodeProblem& problem) {
  const DecodeCase& decode_case = problem.decode_case();
  DecodePlan plan(runtime_.prepare_decode(decode_case.descriptor, stream_.device()),
                  decode_case.batch(), decode_case.seqlen_q);
  DeviceBuffer earlier;
  if (decode_case.plan == PlanSource::host) {
    plan.update(decode_case.seq_lens, stream_.handle());
  } else if (decode_case.plan == PlanSource::stale) {
    const std::vector<int> lengths = earlier_lengths(decode_case.seq_lens);
    earlier = make_device_buffer<int>(stream_.device(), lengths, stream_.handle());
    plan.update(static_cast<const int*>(earlier.data()), decode_case.batch(), stream_.handle());
  } else {
    plan.update(problem.device_seq_lens(), decode_case.batch(), stream_.handle());
  }
  DeviceBuffer workspace(stream_.device(), static_cast<std::size_t>(plan.workspace_bytes()));
  workspace.fill(0xff, stream_.handle());
  problem.poison_outputs(stream_);
  run_decode(plan, problem.call(), workspace.data(), plan.workspace_bytes(), stream_.handle());
  stream_.synchronize();  // plan and workspace go away
}

DecodeCheckResult DecodeChecker::check(const DecodeCase& decode_case) {
  DecodeProblem problem(kernels_, decode_case, stream_, decode_case.seed);
  run(problem);
  DecodeCheckResult result;
  result.comparison = compare_with_reference(kernels_, problem, stream_, tolerance_);
  const double squares = result.comparison.squares;
  result.cosine_distance = squares > 0 ? 1.0 - 2.0 * result.comparison.dot / squares : 0.0;
  result.failure = find_failure(result, tolerance_);
  result.passed = result.failure.empty();
  return result;
}

DecodeCheckResult DecodeChecker::check_permutation(const DecodeCase& decode_case) {
  std::vector<std::vector<unsigned char>> outputs;
  for (const std::uint64_t table_seed : {decode_case.seed, decode_case.seed + 1000}) {
    DecodeProblem problem(kernels_, decode_case, stream_, table_seed);
    run(problem);
    outputs.push_back(problem.download_outputs(stream_));
  }
  DecodeCheckResult result;
  result.passed = outputs[0] == outputs[1];
  result.failure = result.passed ? "" : "outputs differ after the pages were permuted";
  return result;
}

}  // namespace attnjit::check
