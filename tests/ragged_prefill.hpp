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

}  // namespace attnjit::test
