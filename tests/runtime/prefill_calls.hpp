// Legal prefill calls of every layout over tensors that are not there: 2 requests, 8 query heads of
// 128 columns, 2 kv heads, values of 64 columns. A causal mask, and nothing that is optional.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "attnjit/prefill.hpp"

namespace attnjit::test {

struct PrefillCase {
  AttentionDescriptor descriptor;
  PrefillCall call;
};

// `place` tells tensors apart, where that matters.
inline void* fake_pointer(std::uintptr_t place = 1) {
  return reinterpret_cast<void*>(place * 0x1000);
}

inline TensorView elements(std::initializer_list<std::int64_t> shape, std::uintptr_t place = 1) {
  return contiguous_view(fake_pointer(place), DataType::bf16, shape);
}

inline TensorView integers(std::initializer_list<std::int64_t> shape, std::uintptr_t place = 1) {
  return contiguous_view(fake_pointer(place), DataType::int32, shape);
}

inline TensorView fp32_numbers(std::initializer_list<std::int64_t> shape,
                               std::uintptr_t place = 1) {
  return contiguous_view(fake_pointer(place), DataType::fp32, shape);
}

inline TensorView bytes(std::initializer_list<std::int64_t> shape, std::uintptr_t place = 1) {
  return contiguous_view(fake_pointer(place), DataType::uint8, shape);
}

// 50 query tokens in all; the keys are the caller's to give.
inline PrefillCase ragged_queries() {
  PrefillCase prefill;
  AttentionDescriptor& descriptor = prefill.descriptor;
  descriptor.operation = Operation::prefill;
  descriptor.head_dim_qk = 128;
  descriptor.head_dim_v = 64;
  descriptor.num_q_heads = 8;
  descriptor.num_kv_heads = 2;
  descriptor.max_seqlen_q = 0;
  prefill.call.q = elements({50, 8, 128}, 2);
  prefill.call.q_offsets = integers({3}, 3);
  prefill.call.out = elements({50, 8, 64}, 4);
  prefill.call.lse = fp32_numbers({8, 50}, 5);
  return prefill;
}

// 70 keys in all.
inline PrefillCase ragged() {
  PrefillCase prefill = ragged_queries();
  prefill.descriptor.kv_layout = KvLayout::ragged;
  prefill.descriptor.kv_layout_tag = KvLayoutTag::thd;
  prefill.descriptor.page_size = 0;
  prefill.call.k = elements({70, 2, 128}, 6);
  prefill.call.v = elements({70, 2, 64}, 7);
  prefill.call.kv_offsets = integers({3}, 8);
  return prefill;
}

// 30 query tokens and 40 keys in each request.
inline PrefillCase dense(KvLayoutTag tag) {
  PrefillCase prefill = ragged_queries();
  prefill.descriptor.kv_layout = KvLayout::dense;
  prefill.descriptor.kv_layout_tag = tag;
  prefill.descriptor.page_size = 0;
  const bool is_bshd = tag == KvLayoutTag::bshd;
  prefill.call.q_offsets = {};
  prefill.call.q = elements({2, 30, 8, 128}, 2);
  prefill.call.out = elements({2, 30, 8, 64}, 4);
  prefill.call.lse = fp32_numbers({2, 8, 30}, 5);
  prefill.call.k = is_bshd ? elements({2, 40, 2, 128}, 6) : elements({2, 2, 40, 128}, 6);
  prefill.call.v = is_bshd ? elements({2, 40, 2, 64}, 7) : elements({2, 2, 40, 64}, 7);
  return prefill;
}

// Up to 5 pages of 16 tokens for each request: nhd in a pool of 9, hnd in 9 of its own.
inline PrefillCase paged(KvLayoutTag tag) {
  PrefillCase prefill = ragged_queries();
  prefill.descriptor.operation = Operation::prefill_kvcache;
  prefill.descriptor.kv_layout = KvLayout::paged;
  prefill.descriptor.kv_layout_tag = tag;
  prefill.descriptor.page_size = 16;
  const bool is_pool = tag == KvLayoutTag::nhd;
  prefill.call.k = is_pool ? elements({9, 16, 2, 128}, 6) : elements({2, 9, 2, 16, 128}, 6);
  prefill.call.v = is_pool ? elements({9, 16, 2, 64}, 7) : elements({2, 9, 2, 16, 64}, 7);
  prefill.call.block_table = integers({2, 5}, 8);
  prefill.call.seq_lens = integers({2}, 9);
  return prefill;
}

// 70 ragged keys without their last 64 columns, which are those of a cache of 96: in 9 pages of 16
// tokens, or 40 of each request.
inline PrefillCase roped(KvLayoutTag tag) {
  PrefillCase prefill = ragged_queries();
  prefill.descriptor.operation = Operation::mla_prefill_rope;
  const bool is_paged = tag == KvLayoutTag::nhd || tag == KvLayoutTag::hnd;
  prefill.descriptor.kv_layout = is_paged ? KvLayout::paged : KvLayout::dense;
  prefill.descriptor.kv_layout_tag = tag;
  prefill.descriptor.page_size = is_paged ? 16 : 0;
  prefill.call.k = elements({70, 2, 64}, 6);
  prefill.call.v = elements({70, 2, 64}, 7);
  prefill.call.kv_offsets = integers({3}, 8);
  const std::int64_t first = is_paged ? 9 : 2;
  const std::int64_t tokens = is_paged ? 16 : 40;
  const bool heads_first = tag == KvLayoutTag::hnd || tag == KvLayoutTag::bhsd;
  prefill.call.k_rope =
      heads_first ? elements({first, 1, tokens, 96}, 9) : elements({first, tokens, 1, 96}, 9);
  if (is_paged) {
    prefill.call.block_table = integers({2, 5}, 10);
    prefill.call.query_positions = integers({2}, 11);
  }
  return prefill;
}

}  // namespace attnjit::test
