#include "attnjit/flare_mla_prefill.hpp"

namespace attnjit {

namespace {

void set_scales(FlareScales scales, AttentionDescriptor& descriptor) {
  constexpr int columns_per_scale = 64;
  if (scales == FlareScales::rope_blocks) {
    descriptor.scales_rope = ScaleGrain::per_block;
    descriptor.scale_block = columns_per_scale;
  } else if (scales == FlareScales::per_token) {
    descriptor.q_rope_apart = true;
    descriptor.scales_q = descriptor.scales_kv = ScaleGrain::per_token;
  }
}

}  // namespace

AttentionDescriptor flare_mla_prefill_descriptor(const FlareMlaPrefillShape& shape) {
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::mla_prefill_rope;
  descriptor.dtype_q = descriptor.dtype_kv = shape.dtype;
  descriptor.dtype_out = size_bytes(shape.dtype) == 1 ? DataType::bf16 : shape.dtype;
  const bool has_fp8_rope = shape.scales == FlareScales::rope_blocks;
  descriptor.dtype_rope =
      shape.dtype_rope.value_or(has_fp8_rope ? DataType::fp8_e4m3 : descriptor.dtype_out);
  set_scales(shape.scales, descriptor);
  descriptor.head_dim_qk = shape.q_depth;
  descriptor.head_dim_v = shape.depth;
  descriptor.num_q_heads = descriptor.num_kv_heads = shape.num_heads;
  descriptor.max_seqlen_q = 0;
  descriptor.kv_layout = shape.page_size > 0 ? KvLayout::paged : KvLayout::dense;
  descriptor.kv_layout_tag = shape.page_size > 0 ? KvLayoutTag::nhd : KvLayoutTag::bshd;
  descriptor.page_size = shape.page_size;
  descriptor.mask = shape.mask;
  descriptor.returns_lse = shape.returns_lse;
  return descriptor;
}

void flare_mla_prefill(const PreparedPrefill& kernel, const FlareMlaPrefillCall& call,
                       CUstream_st* stream) {
  PrefillCall prefill;
  prefill.q = call.q;
  prefill.k = call.k;
  prefill.v = call.v;
  prefill.k_rope = call.k_rope;
  prefill.q_rope = call.q_rope;
  prefill.q_scales = call.q_scale;
  prefill.k_scales = call.k_scales;
  prefill.rope_scales = call.k_rope_scales;
  prefill.q_offsets = call.valid_length;
  prefill.kv_offsets = call.cache_row_offsets;
  prefill.block_table = call.block_table;
  prefill.query_positions = call.cache_lengths;
  prefill.key_positions = call.cache_offsets;
  prefill.mask = call.mask;
  prefill.out = call.output;
  prefill.lse = call.lse;
  prefill.softmax_scale = call.scale;
  run_prefill(kernel, prefill, stream);
}

}  // namespace attnjit
