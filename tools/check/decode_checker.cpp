#include "decode_checker.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "attnjit/kernel_launch.hpp"
#include "decode_arguments.hpp"

namespace attnjit::check {
namespace {

// Scratch memory for the reference's scores, bytes: tiles are taken in as many launches as it
// needs.
constexpr std::int64_t most_scratch_bytes = std::int64_t{1} << 30;

int mask_meaning(MaskKind mask) {
  switch (mask) {
    case MaskKind::causal:
      return mask_causal;
    case MaskKind::materialized_bool:
      return mask_bool;
    case MaskKind::materialized_additive:
      return mask_additive;
    default:
      return mask_none;
  }
}

ReferenceArguments make_reference_arguments(const DecodeProblem& problem) {
  const AttentionDescriptor& descriptor = problem.decode_case().descriptor;
  ReferenceArguments arguments = {};
  arguments.call = make_decode_arguments(descriptor, problem.call());
  arguments.head_dim_qk = descriptor.head_dim_qk;
  arguments.head_dim_v = descriptor.head_dim_v;
  arguments.q_per_kv = descriptor.q_per_kv();
  arguments.page_size = descriptor.page_size;
  arguments.max_seqlen = problem.max_seqlen();
  arguments.kind = element_kind(descriptor.dtype_q);
  arguments.value_is_prefix = descriptor.value_source == ValueSource::prefix_of_k ? 1 : 0;
  arguments.mask = mask_meaning(descriptor.mask);
  arguments.mask_kind = element_kind(descriptor.dtype_mask);
  return arguments;
}

void run_reference(const CheckKernels& kernels, const DecodeProblem& problem, double* out,
                   double* lse, const DeviceStream& stream) {
  ReferenceArguments arguments = make_reference_arguments(problem);
  arguments.out = out;
  arguments.lse = lse;
  const DecodeCase& decode_case = problem.decode_case();
  const std::int64_t rows = std::int64_t{decode_case.seqlen_q} * arguments.q_per_kv;
  const std::int64_t tiles = (rows + reference_tile_rows - 1) / reference_tile_rows *
                             decode_case.descriptor.num_kv_heads * decode_case.batch();
  const std::int64_t tile_bytes = std::int64_t{reference_tile_rows} * problem.max_seqlen() *
                                  static_cast<std::int64_t>(sizeof(double));
  const std::int64_t chunk = std::clamp<std::int64_t>(most_scratch_bytes / tile_bytes, 1, tiles);
  const DeviceBuffer scores(stream.device(), static_cast<std::size_t>(chunk * tile_bytes));
  arguments.scores = static_cast<double*>(scores.data());
  for (std::int64_t first = 0; first < tiles; first += chunk) {
    arguments.first_tile = first;
    const auto blocks = static_cast<unsigned>(std::min(chunk, tiles - first));
    launch(kernels.reference_decode, {blocks, 1, 1}, stream.handle(), &arguments);
  }
  stream.synchronize();  // `scores` goes away
}

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

Comparison DecodeChecker::compare(const DecodeProblem& problem) {
  const DecodeCase& decode_case = problem.decode_case();
  const AttentionDescriptor& descriptor = decode_case.descriptor;
  const std::int64_t rows =
      std::int64_t{decode_case.batch()} * decode_case.seqlen_q * descriptor.num_q_heads;
  DeviceBuffer out(stream_.device(),
                   static_cast<std::size_t>(rows * descriptor.head_dim_v) * sizeof(double));
  DeviceBuffer lse(stream_.device(), static_cast<std::size_t>(rows) * sizeof(double));
  out.fill(0xff, stream_.handle());
  lse.fill(0xff, stream_.handle());
  run_reference(kernels_, problem, static_cast<double*>(out.data()),
                static_cast<double*>(lse.data()), stream_);

  DeviceBuffer result(stream_.device(), sizeof(Comparison));
  result.fill(0, stream_.handle());
  const kernel_interface::PagedDecodeArguments call =
      make_decode_arguments(descriptor, problem.call());
  CompareArguments arguments = {};
  arguments.out = call.out;
  arguments.lse = call.lse;
  arguments.reference_out = static_cast<const double*>(out.data());
  arguments.reference_lse = static_cast<const double*>(lse.data());
  arguments.result = static_cast<Comparison*>(result.data());
  arguments.out_strides = call.out_strides;
  arguments.lse_strides = call.lse_strides;
  arguments.num_rows = rows;
  arguments.seqlen_q = decode_case.seqlen_q;
  arguments.num_q_heads = descriptor.num_q_heads;
  arguments.head_dim_v = descriptor.head_dim_v;
  arguments.kind = element_kind(descriptor.dtype_out);
  arguments.absolute = tolerance_.absolute;
  arguments.relative = tolerance_.relative;
  arguments.lse_absolute = tolerance_.lse_absolute;
  arguments.lse_relative = tolerance_.lse_relative;
  launch(kernels_.compare_decode, {static_cast<unsigned>(rows), 1, 1}, stream_.handle(),
         &arguments);
  return download_values<Comparison>(result, 1, stream_.handle()).front();
}

DecodeCheckResult DecodeChecker::check(const DecodeCase& decode_case) {
  DecodeProblem problem(kernels_, decode_case, stream_, decode_case.seed);
  run(problem);
  DecodeCheckResult result;
  result.comparison = compare(problem);
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
