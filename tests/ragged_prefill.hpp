// A causal prefill of any number of query tokens over ragged keys, of one kv head.
#pragma once

#include "attnjit/attention_descriptor.hpp"

namespace attnjit::test {

inline AttentionDescriptor ragged_prefill(int head_dim_qk, int head_dim_v, int q_per_kv) {
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::prefill;
  descriptor.kv_layout = KvLayout::ragged;
  descriptor.kv_layout_tag = KvLayoutTag::thd;
  descriptor.page_size = 0;
  descriptor.head_dim_qk = head_dim_qk;
  descriptor.head_dim_v = head_dim_v;
  descriptor.num_q_heads = q_per_kv;
  descriptor.num_kv_heads = 1;
  descriptor.max_seqlen_q = 0;
  return descriptor;
}

// The same over pages, unless page_size is 0; v is a prefix of k where dims are those of a latent.
inline AttentionDescriptor prefill_over(int page_size, int head_dim_qk, int head_dim_v,
                                        int q_per_kv) {
  AttentionDescriptor descriptor = ragged_prefill(head_dim_qk, head_dim_v, q_per_kv);
  if (page_size > 0) {
    descriptor.operation = Operation::prefill_kvcache;
    descriptor.kv_layout = KvLayout::paged;
    descriptor.kv_layout_tag = KvLayoutTag::nhd;
    descriptor.page_size = page_size;
  }
  const bool is_latent = head_dim_qk > 256 && head_dim_v < head_dim_qk;
  descriptor.value_source = is_latent ? ValueSource::prefix_of_k : ValueSource::separate;
  return descriptor;
}

// With what a mask of the kind cannot be without.
inline void set_mask(AttentionDescriptor& descriptor, MaskKind mask) {
  const bool is_window = mask == MaskKind::sliding_window;
  const bool is_chunked = mask == MaskKind::chunked || mask == MaskKind::chunked_causal;
  descriptor.mask = mask;
  descriptor.window_left = is_window ? 127 : -1;
  descriptor.window_right = is_window ? 0 : -1;
  descriptor.chunk_size = is_chunked ? 8192 : 0;
  if (mask == MaskKind::materialized_additive) {
    descriptor.dtype_mask = DataType::fp32;
  }
}

// Blocks of so many tokens; 0: all keys are looked at.
inline void set_blocks(AttentionDescriptor& descriptor, int sparsity_block) {
  descriptor.sparsity = sparsity_block > 0 ? Sparsity::block : Sparsity::none;
  descriptor.sparsity_block = sparsity_block;
}

// Of one head, whose last 64 of 192 columns of k lie in a cache of their own: paged, or dense if
// page_size is 0.
inline AttentionDescriptor rope_prefill(int page_size) {
  AttentionDescriptor descriptor = ragged_prefill(192, 128, 1);
  descriptor.operation = Operation::mla_prefill_rope;
  descriptor.kv_layout = page_size > 0 ? KvLayout::paged : KvLayout::dense;
  descriptor.kv_layout_tag = page_size > 0 ? KvLayoutTag::nhd : KvLayoutTag::bshd;
  descriptor.page_size = page_size;
  return descriptor;
}

}  // namespace attnjit::test
