#include "decode_case.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

namespace attnjit::check {

std::string_view to_string(PlanSource source) {
  switch (source) {
    case PlanSource::device:
      return "device";
    case PlanSource::host:
      return "host";
    case PlanSource::stale:
      return "stale";
  }
  return "";
}

KeyRange visible_keys(const DecodeCase& decode_case, int seqlen_kv, int query) {
  const AttentionDescriptor& descriptor = decode_case.descriptor;
  const std::int64_t position = std::int64_t{seqlen_kv} - decode_case.seqlen_q + query;
  KeyRange keys = {0, seqlen_kv};
  if (descriptor.mask == MaskKind::causal) {
    keys.end = position + 1;
  } else if (descriptor.mask == MaskKind::sliding_window) {
    if (descriptor.window_left >= 0) {
      keys.begin = std::max<std::int64_t>(0, position - descriptor.window_left);
    }
    if (descriptor.window_right >= 0) {
      keys.end = std::min<std::int64_t>(seqlen_kv, position + 1 + descriptor.window_right);
    }
  }
  return keys;
}

std::vector<int> with_shorter_mates(const DecodeCase& decode_case, std::size_t parity) {
  std::vector<int> lengths = decode_case.seq_lens;
  for (std::size_t i = parity; i < lengths.size(); i += 2) {
    const bool has_first_keys = visible_keys(decode_case, lengths[i], 0).begin == 0;
    lengths[i] = has_first_keys ? lengths[i] / 3 : 0;
  }
  return lengths;
}

std::string describe(const DecodeCase& decode_case) {
  const AttentionDescriptor& descriptor = decode_case.descriptor;
  const auto [shortest, longest] =
      std::minmax_element(decode_case.seq_lens.begin(), decode_case.seq_lens.end());
  const std::string lengths = *shortest == *longest ? fmt::format("{}", *longest)
                                                    : fmt::format("{}-{}", *shortest, *longest);
  const std::string mask =
      describe_mask(descriptor) +
      (descriptor.has_sinks ? fmt::format(" {}", to_string(decode_case.sinks)) : "") +
      (descriptor.batch_invariant ? " batch-invariant" : "");
  return fmt::format("{} {}/{} h {}/{} {} page {} {} {} | b {} s_q {} s_k {} | {} plan {}",
                     descriptor.value_source == ValueSource::prefix_of_k ? "mla" : "gqa",
                     descriptor.head_dim_qk, descriptor.head_dim_v, descriptor.num_q_heads,
                     descriptor.num_kv_heads, to_string(descriptor.dtype_q), descriptor.page_size,
                     to_string(descriptor.kv_layout_tag), mask, decode_case.batch(),
                     decode_case.seqlen_q, lengths, to_string(decode_case.arrangement),
                     to_string(decode_case.plan));
}

std::vector<int> equal_lengths(int batch, int length) {
  return std::vector<int>(static_cast<std::size_t>(batch), length);
}

std::vector<int> varied_lengths(int batch, int mean, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int> lengths;
  for (int i = 0; i < batch; ++i) {
    // Not std::uniform_int_distribution: its results differ between standard libraries.
    lengths.push_back(1 + static_cast<int>(random() % (2 * static_cast<std::uint64_t>(mean))));
  }
  return lengths;
}

}  // namespace attnjit::check
