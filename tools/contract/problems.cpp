#include "problems.hpp"

#include <utility>

namespace attnjit::contract {

check::DecodeCase decode_of(const AttentionDescriptor& descriptor, std::vector<int> seq_lens) {
  check::DecodeCase decode_case;
  decode_case.descriptor = descriptor;
  decode_case.seqlen_q = descriptor.max_seqlen_q;
  decode_case.seq_lens = std::move(seq_lens);
  return decode_case;
}

check::DecodeCase gqa_decode(std::vector<int> seq_lens, int seqlen_q) {
  return decode_of(check::gqa_descriptor(12, 4, 128, seqlen_q), std::move(seq_lens));
}

check::DecodeCase mla_decode(int num_q_heads, std::vector<int> seq_lens, int seqlen_q) {
  return decode_of(check::mla_descriptor(num_q_heads, seqlen_q), std::move(seq_lens));
}

check::PrefillCase prefill_of(const AttentionDescriptor& descriptor,
                              const check::Lengths& lengths) {
  std::vector<check::PrefillSuiteCase> suite;
  return check::add_prefill_case(suite, "", descriptor, lengths);
}

std::vector<int> edge_lengths() {
  return {0, 1, 63, 64, 65, 127, 128, 129, 700};
}

check::Lengths edge_prefills() {
  return check::mixed_lengths();
}

AttentionDescriptor ragged_12_4() {
  return check::ragged_descriptor(12, 4, 128);
}

AttentionDescriptor paged_12_4() {
  return check::paged_descriptor(12, 4, 128);
}

AttentionDescriptor dense_12_4(KvLayoutTag tag) {
  AttentionDescriptor descriptor = ragged_12_4();
  descriptor.kv_layout = KvLayout::dense;
  descriptor.kv_layout_tag = tag;
  return descriptor;
}

AttentionDescriptor with_types(AttentionDescriptor descriptor, DataType dtype) {
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = dtype;
  return descriptor;
}

AttentionDescriptor with_fp8(AttentionDescriptor descriptor, DataType q, DataType kv,
                             ScaleGrain grain) {
  descriptor.dtype_q = q;
  descriptor.dtype_kv = kv;
  descriptor.dtype_out = DataType::bf16;
  descriptor.scales_q = size_bytes(q) == 1 ? grain : ScaleGrain::none;
  descriptor.scales_kv = grain;
  descriptor.scale_block = grain == ScaleGrain::per_block ? 64 : 0;
  return descriptor;
}

AttentionDescriptor with_dims(AttentionDescriptor descriptor, int head_dim_qk, int head_dim_v) {
  descriptor.head_dim_qk = head_dim_qk;
  descriptor.head_dim_v = head_dim_v;
  return descriptor;
}

AttentionDescriptor with_window(AttentionDescriptor descriptor, int left, int right) {
  descriptor.mask = MaskKind::sliding_window;
  descriptor.window_left = left;
  descriptor.window_right = right;
  return descriptor;
}

AttentionDescriptor with_pages(AttentionDescriptor descriptor, int page_size, KvLayoutTag tag) {
  descriptor.page_size = page_size;
  descriptor.kv_layout_tag = tag;
  return descriptor;
}

}  // namespace attnjit::contract
