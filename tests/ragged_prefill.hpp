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
