#include "reference_decode.hpp"

#include <algorithm>

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
    case MaskKind::sliding_window:
      return mask_window;
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
  arguments.window_left = descriptor.window_left;
  arguments.window_right = descriptor.window_right;
  arguments.has_sinks = descriptor.has_sinks ? 1 : 0;
  return arguments;
}

}  // namespace

ReferenceResult compute_reference(const CheckKernels& kernels, const DecodeProblem& problem,
                                  const DeviceStream& stream) {
  const DecodeCase& decode_case = problem.decode_case();
  const AttentionDescriptor& descriptor = decode_case.descriptor;
  const std::int64_t results =
      std::int64_t{decode_case.batch()} * decode_case.seqlen_q * descriptor.num_q_heads;
  constexpr auto element_bytes = static_cast<std::int64_t>(sizeof(double));
  ReferenceResult result;
  result.out = DeviceBuffer(
      stream.device(), static_cast<std::size_t>(results * descriptor.head_dim_v * element_bytes));
  result.lse = DeviceBuffer(stream.device(), static_cast<std::size_t>(results * element_bytes));
  result.out.fill(0xff, stream.handle());
  result.lse.fill(0xff, stream.handle());

  ReferenceArguments arguments = make_reference_arguments(problem);
  arguments.out = static_cast<double*>(result.out.data());
  arguments.lse = static_cast<double*>(result.lse.data());
  const std::int64_t rows = std::int64_t{decode_case.seqlen_q} * arguments.q_per_kv;
  const std::int64_t tiles = (rows + reference_tile_rows - 1) / reference_tile_rows *
                             descriptor.num_kv_heads * decode_case.batch();
  const std::int64_t tile_bytes =
      std::int64_t{reference_tile_rows} * problem.max_seqlen() * element_bytes;
  const std::int64_t chunk = std::clamp<std::int64_t>(most_scratch_bytes / tile_bytes, 1, tiles);
  const DeviceBuffer scores(stream.device(), static_cast<std::size_t>(chunk * tile_bytes));
  arguments.scores = static_cast<double*>(scores.data());
  for (std::int64_t first = 0; first < tiles; first += chunk) {
    arguments.first_tile = first;
    const auto blocks = static_cast<unsigned>(std::min(chunk, tiles - first));
    launch(kernels.reference_decode, {blocks, 1, 1}, stream.handle(), &arguments);
  }
  stream.synchronize();  // `scores` goes away
  return result;
}

}  // namespace attnjit::check
