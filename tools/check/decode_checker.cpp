#include "decode_checker.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
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

double from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// What softmax and output come to where all scores are 0 and all values 1.
struct OracleRow {
  double out;
  double lse;
};

OracleRow oracle_row(const DecodeProblem& problem, int request, int query, int head) {
  const DecodeCase& decode_case = problem.decode_case();
  const int length = decode_case.seq_lens[static_cast<std::size_t>(request)];
  const auto keys = static_cast<double>(visible_keys(decode_case, length, query).size());
  const double sink = std::exp(double{problem.sinks()[static_cast<std::size_t>(head)]});
  return {keys > 0 ? keys / (keys + sink) : 0.0, std::log(keys)};
}

// How far rows of outputs [batch, seqlen_q, num_q_heads, head_dim_v] and LSEs [batch, num_q_heads,
// seqlen_q] are from the oracle, in tolerances.
Comparison compare_with_oracle(const DecodeProblem& problem, const std::vector<std::uint16_t>& out,
                               const std::vector<float>& lse, const Tolerance& tolerance) {
  const DecodeCase& decode_case = problem.decode_case();
  const auto heads = static_cast<std::size_t>(decode_case.descriptor.num_q_heads);
  const auto columns = static_cast<std::size_t>(decode_case.descriptor.head_dim_v);
  const auto queries = static_cast<std::size_t>(decode_case.seqlen_q);
  Comparison comparison = {};
  const auto add = [&](double value, double expected, double allowed, double& worst,
                       double& worst_excess) {
    const bool is_equal = value == expected;  // -inf too
    comparison.mismatches += is_equal || (std::isfinite(value) && std::isfinite(expected)) ? 0 : 1;
    const double error = is_equal ? 0.0 : std::abs(value - expected);
    worst = std::max(worst, error);
    worst_excess = std::max(worst_excess, error / allowed);
  };
  for (std::size_t row = 0; row < out.size() / columns; ++row) {
    const std::size_t head = row % heads;
    const std::size_t query = row / heads % queries;
    const std::size_t request = row / heads / queries;
    const OracleRow expected = oracle_row(problem, static_cast<int>(request),
                                          static_cast<int>(query), static_cast<int>(head));
    for (std::size_t column = 0; column < columns; ++column) {
      add(from_bf16(out[row * columns + column]), expected.out,
          tolerance.absolute + tolerance.relative * expected.out, comparison.worst_error,
          comparison.worst_excess);
    }
    add(lse[(request * heads + head) * queries + query], expected.lse,
        tolerance.lse_absolute + tolerance.lse_relative * std::abs(expected.lse),
        comparison.worst_lse_error, comparison.worst_lse_excess);
  }
  return comparison;
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

DecodeCheckResult DecodeChecker::check_sink_oracle(const DecodeCase& decode_case) {
  DecodeProblem problem(kernels_, decode_case, stream_, decode_case.seed);
  run(problem);
  const std::vector<unsigned char> bytes = problem.download_outputs(stream_);
  const std::size_t rows = static_cast<std::size_t>(decode_case.batch()) *
                           static_cast<std::size_t>(decode_case.seqlen_q) *
                           static_cast<std::size_t>(decode_case.descriptor.num_q_heads);
  std::vector<std::uint16_t> out(rows *
                                 static_cast<std::size_t>(decode_case.descriptor.head_dim_v));
  std::vector<float> lse(rows);
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(std::uint16_t));
  std::memcpy(lse.data(), bytes.data() + out.size() * sizeof(std::uint16_t),
              lse.size() * sizeof(float));
  DecodeCheckResult result;
  result.comparison = compare_with_oracle(problem, out, lse, tolerance_);
  result.failure = find_failure(result, tolerance_);
  result.passed = result.failure.empty();
  return result;
}

}  // namespace attnjit::check
