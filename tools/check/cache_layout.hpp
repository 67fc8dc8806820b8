// How the paged caches of checked problems lie in memory, and where block tables point. Pure;
// thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/tensor_view.hpp"

namespace attnjit::check {

// Keys [begin, end) of a request.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end > begin ? end - begin : 0; }
};

// How a cache's pages lie in memory.
enum class CacheArrangement {
  pool,         // one pool for all requests, in the descriptor's layout tag
  per_request,  // [batch, num_kv_heads, pages, page_size, head_dim]: block ids count within a
                // request
  layered,      // a pool whose pages are interleaved with another layer's
};
std::string_view to_string(CacheArrangement);

struct BlockTable {
  std::vector<int> ids;        // [batch, columns]; what names no page would fault
  std::int64_t columns = 0;    // two more than the longest request needs
  std::int64_t num_pages = 0;  // of the pool, or of each request's cache; some are not used
};

// Pages for the keys of each request, in an order that `table_seed` decides. A request has pages
// from the one that holds key `begin` up to that of key `end` - 1.
BlockTable make_block_table(std::span<const KeyRange> keys, int page_size,
                            CacheArrangement arrangement, std::uint64_t table_seed);

// A cache of `num_pages`, and the memory it takes.
struct CacheLayout {
  TensorView view;  // as k_cache of DecodeCall; of no memory yet
  std::int64_t bytes = 0;
};

CacheLayout lay_out_cache(const AttentionDescriptor& descriptor, CacheArrangement arrangement,
                          int batch, std::int64_t num_pages, int head_dim);

std::int64_t ceil_divide(std::int64_t value, std::int64_t divisor);

}  // namespace attnjit::check
