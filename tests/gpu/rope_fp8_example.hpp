// A prefill of fp8 tensors whose rope columns of k lie in a cache: its tensors on the host, how
// they lie in memory, and its result in fp64. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "attnjit/flare_mla_prefill.hpp"
#include "host_attention.hpp"
#include "host_matrix.hpp"
#include "rope_example.hpp"

namespace attnjit::test {

constexpr int columns_per_scale = 64;

struct RopeFp8Example {
  RopeExample shape = {};                    // of bf16, as the output is
  DataType dtype = DataType::bf16;           // of q, k and v
  DataType dtype_rope = DataType::fp8_e4m3;  // of k_rope
  FlareScales scales = FlareScales::none;

  // Whether q lacks the columns of the rope, as the overload with scales of tokens has it.
  bool has_q_rope() const { return scales == FlareScales::per_token; }
  FlareMlaPrefillShape call_shape() const;
  double softmax_scale() const;
};

std::string describe(const RopeFp8Example& example);

// What tensors hold, a row for each token and head, or token. Scales are no powers of two.
struct RopeFp8Tensors {
  explicit RopeFp8Tensors(const RopeFp8Example& example);

  HostMatrix q;                    // [queries * heads, q_depth], or depth if q_rope is apart
  HostMatrix q_rope;               // [queries * heads, rope columns], of bf16
  HostMatrix k, v;                 // [keys * heads, depth]
  HostMatrix rope;                 // [keys, rope columns]
  std::vector<float> q_scales;     // [queries]
  std::vector<float> k_scales;     // [keys]
  std::vector<float> rope_scales;  // [keys, rope columns / columns_per_scale]
};

// Output [queries, heads, depth] and LSE [queries, heads]. The mask is causal or none.
HostResult expected_result(const RopeFp8Example& example, const RopeFp8Tensors& tensors);

using Bytes = std::vector<std::uint8_t>;

// The rows of `key_bytes` each that `elements` has for the keys of all requests, in the rows of a
// chunk's k and v. What belongs to no key is 0xff.
Bytes chunk_rows(const RopeExample& example, const KeyChunk& chunk, const Bytes& elements,
                 std::int64_t key_bytes);

// Where the keys' rows lie in a cache.
struct CacheRows {
  std::vector<std::int64_t> rows;  // of the keys of all requests
  std::int64_t num_rows = 0;
  std::int64_t page_rows = 0;  // from page to page
  std::int64_t num_pages = 0;
  Numbers table;
  int columns = 0;  // of the table
};

CacheRows place_rows(const RopeExample& example);

// `elements`, of which each key has `key_bytes`, at the ends of a cache's rows of `row_bytes`. The
// rest is 0xff.
Bytes cache_bytes(const CacheRows& rows, const Bytes& elements, std::int64_t key_bytes,
                  std::int64_t row_bytes);

// [num_pages, page_size, 1, width], or [batch, num_keys, 1, width]: a view of no memory yet.
TensorView cache_view(const RopeExample& example, const CacheRows& rows, DataType dtype,
                      std::int64_t width);

}  // namespace attnjit::test
