// Descriptors of token-sparse attention, for tests.
#pragma once

#include "attnjit/attention_descriptor.hpp"

namespace attnjit::test {

// Of DeepSeek's head dims, 512/512 for fp8_584 and 576/512 else; tokens in pages of 64, or in rows.
inline AttentionDescriptor sparse_mla(Operation operation, int num_q_heads,
                                      KvEncoding encoding = KvEncoding::plain) {
  AttentionDescriptor descriptor;
  descriptor.operation = operation;
  descriptor.head_dim_qk = encoding == KvEncoding::fp8_584 ? 512 : 576;
  descriptor.head_dim_v = 512;
  descriptor.num_q_heads = num_q_heads;
  descriptor.num_kv_heads = 1;
  descriptor.value_source = ValueSource::prefix_of_k;
  descriptor.kv_encoding = encoding;
  if (encoding != KvEncoding::plain) {
    descriptor.dtype_kv = DataType::fp8_e4m3;
  }
  descriptor.mask = MaskKind::none;
  descriptor.sparsity = Sparsity::token;
  descriptor.max_seqlen_q = 0;
  if (operation == Operation::sparse_mla_prefill) {
    descriptor.kv_layout = KvLayout::ragged;
    descriptor.kv_layout_tag = KvLayoutTag::thd;
    descriptor.page_size = 0;
  }
  return descriptor;
}

}  // namespace attnjit::test
