#include "attnjit/sparse_mla.hpp"

#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "attnjit/kernel_launch.hpp"
#include "sparse_mla_arguments.hpp"
#include "tensor_checks.hpp"

namespace attnjit {
namespace {

AttentionDescriptor sparse_mla_descriptor(Operation operation, const SparseMlaShape& shape) {
  AttentionDescriptor descriptor;
  descriptor.operation = operation;
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = shape.dtype;
  descriptor.head_dim_qk = shape.head_dim_qk;
  descriptor.head_dim_v = shape.head_dim_v;
  descriptor.num_q_heads = shape.num_q_heads;
  descriptor.num_kv_heads = 1;
  descriptor.max_seqlen_q = 0;
  descriptor.value_source = ValueSource::prefix_of_k;
  descriptor.mask = MaskKind::none;
  descriptor.has_sinks = shape.has_sinks;
  descriptor.sparsity = Sparsity::token;
  return descriptor;
}

// Head tiles of all query tokens; throws ArgumentError if there are more than a grid has.
std::int64_t count_blocks(const SparseMlaConfig& config, const AttentionDescriptor& descriptor,
                          const TensorView& q) {
  constexpr std::int64_t most_blocks = std::numeric_limits<int>::max();
  const std::int64_t head_tiles = (descriptor.num_q_heads + config.block_m - 1) / config.block_m;
  const std::int64_t requests = q.shape[0];
  const std::int64_t seqlen_q = q.rank == 4 ? q.shape[1] : 1;
  if (requests == 0 || seqlen_q == 0) {
    return 0;
  }
  if (seqlen_q > most_blocks / head_tiles || requests > most_blocks / (seqlen_q * head_tiles)) {
    TensorChecks checks;
    checks.add("q", describe(q),
               fmt::format("must have at most {} query tokens", most_blocks / head_tiles),
               "split the batch");
    checks.finish();
  }
  return requests * seqlen_q * head_tiles;
}

}  // namespace

AttentionDescriptor sparse_mla_decode_descriptor(const SparseMlaShape& shape) {
  AttentionDescriptor descriptor = sparse_mla_descriptor(Operation::sparse_mla_decode, shape);
  descriptor.page_size = shape.page_size;
  descriptor.kv_encoding = shape.kv_encoding;
  if (shape.kv_encoding != KvEncoding::plain) {
    descriptor.dtype_kv = DataType::fp8_e4m3;
  }
  return descriptor;
}

AttentionDescriptor sparse_mla_prefill_descriptor(const SparseMlaShape& shape) {
  AttentionDescriptor descriptor = sparse_mla_descriptor(Operation::sparse_mla_prefill, shape);
  descriptor.kv_layout = KvLayout::ragged;
  descriptor.kv_layout_tag = KvLayoutTag::thd;
  descriptor.page_size = 0;
  return descriptor;
}

void run_sparse_mla(const PreparedSparseMla& kernel, const SparseMlaCall& call,
                    CUstream_st* stream) {
  check_sparse_mla_call(kernel.descriptor, call);
  const std::int64_t blocks = count_blocks(kernel.config, kernel.descriptor, call.q);
  if (blocks == 0) {
    return;
  }
  const kernel_interface::SparseMlaArguments arguments =
      make_sparse_mla_arguments(kernel.descriptor, call);
  launch(kernel.kernel, {.x = static_cast<unsigned>(blocks)}, stream, &arguments);
}

}  // namespace attnjit
