// A prefill whose rope columns of k lie in a cache: its tensors on the host, and the same keys put
// together. Pure functions.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "attnjit/tensor_view.hpp"

namespace attnjit::test {

using Bits = std::vector<std::uint16_t>;
using Numbers = std::vector<int>;

struct RopeExample {
  DataType dtype = DataType::bf16;
  int heads = 3;
  int q_depth = 192;
  int depth = 128;
  int page_size = 64;  // of the cache; 0: dense
  int width = 576;     // columns of a row of the cache
  bool heads_first = false;
  MaskKind mask = MaskKind::causal;
  Numbers queries = {70, 0, 1, 0, 130, 33};
  Numbers keys = {135, 40, 1, 0, 130, 223};  // those cached before, and those of the queries

  bool is_paged() const { return page_size > 0; }
  int batch() const { return static_cast<int>(queries.size()); }
  int rope_columns() const { return q_depth - depth; }
  Numbers cached() const;
  int total_queries() const { return std::reduce(queries.begin(), queries.end()); }
  int total_keys() const { return std::reduce(keys.begin(), keys.end()); }
};

// Every request has as many keys as a dense cache.
RopeExample dense_example(RopeExample example);

std::string describe(const RopeExample& example);

// `first`, and what follows after each of `counts`.
Numbers offsets_of(const Numbers& counts, int first = 0);

// Of all requests, one after the other.
struct RopeTensors {
  explicit RopeTensors(const RopeExample& example);

  Bits q;     // [queries, heads, q_depth]
  Bits k, v;  // [keys, heads, depth]
  Bits rope;  // [keys, rope columns]
};

// [keys, heads, q_depth]: every head's own columns, then the rope's.
Bits whole_keys(const RopeExample& example, const RopeTensors& tensors);

// Keys [begin, end) of each request, by position.
struct KeyChunk {
  Numbers begin;
  Numbers end;
};

KeyChunk all_keys(const RopeExample& example);

// Offsets of the requests' rows of k and v: NaN before all requests' and, up to a multiple of 64,
// behind the last key of each.
Numbers row_offsets(const RopeExample& example, const KeyChunk& chunk);

// [rows, heads, depth], of `elements` of all keys.
Bits rows_of_chunk(const RopeExample& example, const KeyChunk& chunk, const Bits& elements);

// A cache of which only the rope columns of keys are numbers.
struct RopeCache {
  Bits elements;
  TensorView view;  // without memory
  Numbers table;    // of pages
  int columns = 0;  // of the table
};

// Each key has the rope of the one `shift` places on.
RopeCache make_cache(const RopeExample& example, const RopeTensors& tensors, int shift);

}  // namespace attnjit::test
