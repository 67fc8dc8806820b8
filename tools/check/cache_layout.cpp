#include "cache_layout.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace attnjit::check {
namespace {

// A page id that no cache holds: reading through it faults.
constexpr int poisoned_page = 2147480000;
constexpr std::int64_t unused_table_columns = 2;
constexpr std::int64_t unused_pages = 3;

// A permutation of 0 … count - 1, the same with every standard library.
std::vector<int> shuffled(std::int64_t count, std::uint64_t seed) {
  std::vector<int> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  std::mt19937_64 random(seed);
  for (std::size_t i = ids.size(); i > 1; --i) {
    std::swap(ids[i - 1], ids[random() % i]);
  }
  return ids;
}

}  // namespace

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

std::int64_t ceil_divide(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

BlockTable make_block_table(std::span<const KeyRange> keys, int page_size,
                            CacheArrangement arrangement, std::uint64_t table_seed) {
  const bool is_per_request = arrangement == CacheArrangement::per_request;
  std::int64_t longest = 1;
  std::int64_t all = 0;
  for (const KeyRange& range : keys) {
    longest = std::max(longest, ceil_divide(range.end, page_size));
    all += ceil_divide(range.end, page_size);
  }
  BlockTable table;
  table.columns = longest + unused_table_columns;
  table.num_pages = (is_per_request ? longest : all) + unused_pages;
  table.ids.assign(keys.size() * static_cast<std::size_t>(table.columns), poisoned_page);
  std::vector<int> ids = shuffled(table.num_pages, table_seed);
  std::size_t next = 0;
  for (std::size_t b = 0; b < keys.size(); ++b) {
    if (is_per_request) {
      ids = shuffled(table.num_pages, table_seed + b);
      next = 0;
    }
    const std::int64_t pages = ceil_divide(keys[b].end, page_size);
    for (std::int64_t i = keys[b].begin / page_size; i < pages; ++i) {
      table.ids[b * static_cast<std::size_t>(table.columns) + static_cast<std::size_t>(i)] =
          ids[next++];
    }
  }
  return table;
}

CacheLayout lay_out_cache(const AttentionDescriptor& descriptor, CacheArrangement arrangement,
                          int batch, std::int64_t num_pages, int head_dim) {
  const bool is_hnd = descriptor.kv_layout_tag == KvLayoutTag::hnd;
  const std::int64_t second = is_hnd ? descriptor.num_kv_heads : descriptor.page_size;
  const std::int64_t third = is_hnd ? descriptor.page_size : descriptor.num_kv_heads;
  const std::int64_t caches = arrangement == CacheArrangement::per_request ? batch : 1;
  const std::int64_t layers = arrangement == CacheArrangement::layered ? 2 : 1;
  CacheLayout layout;
  layout.bytes =
      caches * num_pages * layers * second * third * head_dim * size_bytes(descriptor.dtype_kv);
  if (arrangement == CacheArrangement::per_request) {
    // Within a request the heads lie outermost: [num_kv_heads, pages, page_size, head_dim].
    const TensorView heads_first = contiguous_view(
        nullptr, descriptor.dtype_kv,
        {caches, descriptor.num_kv_heads, num_pages, descriptor.page_size, head_dim});
    layout.view = is_hnd ? permuted_view(heads_first, {0, 2, 1, 3, 4})
                         : permuted_view(heads_first, {0, 2, 3, 1, 4});
    return layout;
  }
  layout.view = contiguous_view(nullptr, descriptor.dtype_kv, {num_pages, second, third, head_dim});
  layout.view.strides[0] *= layers;
  return layout;
}

}  // namespace attnjit::check
