#include "decode_arguments.hpp"

#include <fmt/format.h>

#include "attention_tensors.hpp"
#include "cache_arguments.hpp"
#include "tensor_checks.hpp"

namespace attnjit {
namespace {

using namespace kernel_interface;

bool is_materialized(MaskKind mask) {
  return mask == MaskKind::materialized_bool || mask == MaskKind::materialized_additive;
}

// A mask dimension is either the full extent or 1, which is broadcast.
void check_mask(TensorChecks& checks, const AttentionDescriptor& descriptor, const TensorView& mask,
                int batch, int seqlen_q) {
  if (!is_materialized(descriptor.mask)) {
    if (mask.data != nullptr) {
      checks.add(
          "mask", describe(mask),
          fmt::format("must not be given: the descriptor's mask is {}", to_string(descriptor.mask)),
          "prepare a descriptor with mask materialized_bool or materialized_additive");
    }
    return;
  }
  const auto full_or_one = [&](std::size_t dimension, std::int64_t full) {
    return mask.shape.at(dimension) == 1 ? 1 : full;
  };
  if (checks.require_shape("mask", mask, descriptor.dtype_mask,
                           {full_or_one(0, batch), full_or_one(1, descriptor.num_q_heads),
                            full_or_one(2, seqlen_q), TensorChecks::any})) {
    checks.require_readable("mask", mask);
    checks.require_some("mask", mask, 3);
  }
}

}  // namespace

void check_decode_call(const AttentionDescriptor& descriptor, const DecodeCall& call, int batch,
                       int seqlen_q) {
  TensorChecks checks;
  check_rows(checks, "q", call.q, descriptor.dtype_q,
             {batch, seqlen_q, descriptor.num_q_heads, descriptor.head_dim_qk});
  check_cache(checks, "k_cache", call.k_cache, descriptor, batch, TensorChecks::any,
              descriptor.head_dim_qk);
  if (descriptor.value_source == ValueSource::separate) {
    check_cache(checks, "v_cache", call.v_cache, descriptor, batch, TensorChecks::any,
                descriptor.head_dim_v);
  } else if (call.v_cache.data != nullptr) {
    checks.add("v_cache", describe(call.v_cache),
               "must not be given: v is a prefix of k in the descriptor",
               "leave it out, or prepare a descriptor with value_source separate");
  }
  check_block_table(checks, call.block_table, batch);
  check_numbers(checks, "seq_lens", call.seq_lens, DataType::int32, {batch});
  check_mask(checks, descriptor, call.mask, batch, seqlen_q);
  check_sinks(checks, descriptor, call.sinks);
  check_output(checks, "out", call.out, descriptor.dtype_out,
               {batch, seqlen_q, descriptor.num_q_heads, descriptor.head_dim_v});
  if (call.lse.data != nullptr) {
    if (checks.require_shape("lse", call.lse, DataType::fp32,
                             {batch, descriptor.num_q_heads, seqlen_q})) {
      checks.require_distinct("lse", call.lse);
    }
  }
  check_softmax_scale(checks, call.softmax_scale);
  checks.finish();
}

PagedDecodeArguments make_decode_arguments(const AttentionDescriptor& descriptor,
                                           const DecodeCall& call) {
  PagedDecodeArguments arguments = {};
  arguments.q = call.q.data;
  arguments.k_cache = call.k_cache.data;
  arguments.v_cache = call.v_cache.data;
  arguments.mask = call.mask.data;
  arguments.out = call.out.data;
  arguments.lse = static_cast<float*>(call.lse.data);
  arguments.block_table = static_cast<const int*>(call.block_table.data);
  arguments.seq_lens = static_cast<const int*>(call.seq_lens.data);
  arguments.q_strides = {call.q.strides[0], call.q.strides[1], call.q.strides[2]};
  arguments.out_strides = {call.out.strides[0], call.out.strides[1], call.out.strides[2]};
  arguments.lse_strides = {call.lse.strides[0], call.lse.strides[2], call.lse.strides[1]};
  arguments.k_strides = cache_strides(call.k_cache, descriptor.kv_layout_tag);
  arguments.v_strides = cache_strides(call.v_cache, descriptor.kv_layout_tag);
  arguments.mask_strides = mask_strides(call.mask);
  arguments.block_table_stride = call.block_table.strides[0];
  arguments.block_table_columns = bounded_extent(call.block_table.shape[1]);
  arguments.mask_keys = call.mask.rank == 4 ? bounded_extent(call.mask.shape[3]) : 0;
  arguments.seqlen_q = static_cast<int>(call.q.shape[1]);
  arguments.num_kv_heads = descriptor.num_kv_heads;
  arguments.softmax_scale = call.softmax_scale;
  arguments.sinks = static_cast<const float*>(call.sinks.data);
  return arguments;
}

}  // namespace attnjit
