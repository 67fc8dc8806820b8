#include "attnjit/mla_decode.hpp"

namespace attnjit {

AttentionDescriptor mla_decode_descriptor(const MlaDecodeShape& shape) {
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::decode;
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = shape.dtype;
  descriptor.head_dim_qk = shape.kv_lora_rank + shape.qk_rope_head_dim;
  descriptor.head_dim_v = shape.kv_lora_rank;
  descriptor.num_q_heads = shape.num_q_heads;
  descriptor.num_kv_heads = 1;
  descriptor.max_seqlen_q = shape.max_seqlen_q;
  descriptor.page_size = shape.page_size;
  descriptor.value_source = ValueSource::prefix_of_k;
  if (shape.window_left != -1) {
    descriptor.mask = MaskKind::sliding_window;
    descriptor.window_left = shape.window_left;
    descriptor.window_right = 0;
  }
  descriptor.has_sinks = shape.has_sinks;
  descriptor.batch_invariant = shape.batch_invariant;
  return descriptor;
}

void mla_decode(const DecodePlan& plan, const MlaDecodeCall& call, void* workspace,
                std::int64_t workspace_bytes, CUstream_st* stream) {
  DecodeCall decode;
  decode.q = call.q;
  decode.k_cache = call.kv_cache;
  decode.block_table = call.block_table;
  decode.seq_lens = call.seq_lens;
  decode.sinks = call.sinks;
  decode.out = call.out;
  decode.lse = call.lse;
  decode.softmax_scale = call.softmax_scale;
  run_decode(plan, decode, workspace, workspace_bytes, stream);
}

}  // namespace attnjit
