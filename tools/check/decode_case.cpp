#include "decode_case.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

namespace attnjit::check {

std::string_view to_string(CacheArrangement arrangement) {
  switch (arrangement) {
    case CacheArrangement::pool:
      return "pool";
    case CacheArrangement::per_request:
      return "per_request";
    case CacheArrangement::layered:
      return "layered";
  }
  return "";
}

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

std::string describe(const DecodeCase& decode_case) {
  const AttentionDescriptor& descriptor = decode_case.descriptor;
  const auto [shortest, longest] =
      std::minmax_element(decode_case.seq_lens.begin(), decode_case.seq_lens.end());
  const std::string lengths = *shortest == *longest ? fmt::format("{}", *longest)
                                                    : fmt::format("{}-{}", *shortest, *longest);
  return fmt::format("{} {}/{} h {}/{} {} page {} {} {}{} | b {} s_q {} s_k {} | {} plan {}",
                     descriptor.value_source == ValueSource::prefix_of_k ? "mla" : "gqa",
                     descriptor.head_dim_qk, descriptor.head_dim_v, descriptor.num_q_heads,
                     descriptor.num_kv_heads, to_string(descriptor.dtype_q), descriptor.page_size,
                     to_string(descriptor.kv_layout_tag), to_string(descriptor.mask),
                     descriptor.batch_invariant ? " batch-invariant" : "", decode_case.batch(),
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
