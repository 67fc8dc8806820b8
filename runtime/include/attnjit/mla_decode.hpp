// Decode over DeepSeek's latent cache (operation 9 of the contract): one kv head whose rows hold K,
// and V in their first columns. A thin face of paged_decode.hpp: prepare, plan, run as there.
#pragma once

#include <cstdint>

#include "attnjit/paged_decode.hpp"

namespace attnjit {

struct MlaDecodeShape {
  int num_q_heads = 128;
  int page_size = 64;         // tokens
  int max_seqlen_q = 1;       // query tokens per request
  int kv_lora_rank = 512;     // columns of V
  int qk_rope_head_dim = 64;  // columns of K after those of V
  DataType dtype = DataType::bf16;
  int window_left = -1;          // keys before a query's own that it sees; -1 = all
  bool has_sinks = false;        // a logit per query head in the softmax's denominator
  bool batch_invariant = false;  // as AttentionDescriptor::batch_invariant
};

AttentionDescriptor mla_decode_descriptor(const MlaDecodeShape& shape);

struct MlaDecodeCall {
  TensorView q;            // [batch, seqlen_q, num_q_heads, kv_lora_rank + qk_rope_head_dim]
  TensorView kv_cache;     // [num_pages, page_size, 1, kv_lora_rank + qk_rope_head_dim]
  TensorView block_table;  // int32 [batch, max_pages]
  TensorView seq_lens;     // int32 [batch]
  TensorView sinks;        // fp32 [num_q_heads], natural logarithm; if the shape has sinks
  TensorView out;          // [batch, seqlen_q, num_q_heads, kv_lora_rank]
  TensorView lse;          // fp32 [batch, num_q_heads, seqlen_q], natural logarithm; or not given
  float softmax_scale = 1.0f;
};

// Queues the attention of `call`. Throws as run_decode does.
void mla_decode(const DecodePlan& plan, const MlaDecodeCall& call, void* workspace,
                std::int64_t workspace_bytes, CUstream_st* stream);

}  // namespace attnjit
