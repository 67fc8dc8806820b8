// Problems that several requirements are shown by, few of them, so that few kernels are compiled.
// Pure; thread-safe.
#pragma once

#include <vector>

#include "decode_suite.hpp"
#include "prefill_suite.hpp"

namespace attnjit::contract {

// Causal decodes over pages of 64: grouped heads 12/4 of 128 columns; MLA 576/512.
check::DecodeCase gqa_decode(std::vector<int> seq_lens, int seqlen_q = 1);
check::DecodeCase mla_decode(int num_q_heads, std::vector<int> seq_lens, int seqlen_q = 1);

// A decode of any descriptor, with as many query tokens as it allows.
check::DecodeCase decode_of(const AttentionDescriptor& descriptor, std::vector<int> seq_lens);

// A prefill of any descriptor.
check::PrefillCase prefill_of(const AttentionDescriptor& descriptor, const check::Lengths& lengths);

// Several lengths around blocks and tiles, nothing among them.
std::vector<int> edge_lengths();
check::Lengths edge_prefills();

// 12/4 heads of 128 columns, causal: ragged keys, pages of 64, dense keys in either order.
AttentionDescriptor ragged_12_4();
AttentionDescriptor paged_12_4();
AttentionDescriptor dense_12_4(KvLayoutTag tag);

AttentionDescriptor with_types(AttentionDescriptor descriptor, DataType dtype);

// `q` over `kv` of fp8 with scales of `grain`, of q too if that is fp8; blocks have 64 columns.
AttentionDescriptor with_fp8(AttentionDescriptor descriptor, DataType q, DataType kv,
                             ScaleGrain grain);
AttentionDescriptor with_dims(AttentionDescriptor descriptor, int head_dim_qk, int head_dim_v);
AttentionDescriptor with_window(AttentionDescriptor descriptor, int left, int right);
AttentionDescriptor with_pages(AttentionDescriptor descriptor, int page_size, KvLayoutTag tag);

}  // namespace attnjit::contract
