#include "attnjit/flare_mla_prefill.hpp"

namespace attnjit {

AttentionDescriptor flare_mla_prefill_descriptor(const FlareMlaPrefillShape& shape) {
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::mla_prefill_rope;
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = shape.dtype;
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
  prefill.q_offsets = call.valid_length;
  prefill.kv_offsets = call.cache_row_offsets;
  prefill.block_table = call.block_table;
  prefill.query_positions = call.cache_lengths;
  prefill.key_positions = call.cache_offsets;
  prefill.out = call.output;
  prefill.lse = call.lse;
  prefill.softmax_scale = call.scale;
  run_prefill(kernel, prefill, stream);
}

}  // namespace attnjit
