// One prefill problem, described: everything that a correctness check needs to build its tensors
// again, and what its queries see. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "cache_layout.hpp"
#include "sink_values.hpp"

namespace attnjit::check {

// How q and out lie in memory.
enum class QueryLayout {
  ragged,  // [total_q, num_q_heads, head_dim], with rows of nobody before and behind
  bshd,    // dense
  bhsd,    // a dense view whose heads lie outermost
};
std::string_view to_string(QueryLayout);

// Which dimensions a materialized mask, a bias, a tree or a block-sparse layout has to itself; it
// is broadcast over the others.
struct MaskExtents {
  bool has_batch = true;
  bool has_queries = true;  // a tree and a block-sparse layout have them always
  // Heads: 1, all query heads, or, of a block-sparse layout, all kv heads.
  enum class Heads { one, kv, q } heads = Heads::one;
};

// What a block-sparse layout looks at.
enum class BlockPattern {
  random,      // about every second block
  empty_rows,  // the same, and nothing in every third row of blocks
  all,
};
std::string_view to_string(BlockPattern);

struct PrefillCase {
  AttentionDescriptor descriptor;
  std::vector<int> q_lens;   // query tokens per request
  std::vector<int> kv_lens;  // keys per request
  QueryLayout query_layout = QueryLayout::ragged;
  CacheArrangement arrangement = CacheArrangement::pool;  // of a paged cache
  std::vector<int> query_positions;  // of each request's first query; empty: not given
  std::vector<int> key_positions;    // of each request's first key; empty: not given
  std::vector<int> prefix_lens;      // of a prefix-LM mask
  int segment_tokens = 40;           // of a document mask: tokens of a document
  MaskExtents mask_extents;
  int mask_shortage = 0;  // keys of the longest request that a materialized mask, or a bias
                          // unless keys are dense, leaves out
  BlockPattern blocks = BlockPattern::random;
  int block_shortage = 0;           // columns of blocks that the block-sparse layout leaves out
  int unowned_rows = 0;             // of ragged or dense tensors, per request: rows past its tokens
  int rows_before = 2;              // of ragged q: rows before the first request's
  int row_padding = 0;              // elements between the rows of q, k, v and out, a multiple of 8
  bool scales_share_heads = false;  // of fp8 tensors with scales per token or block
  SinkSize sinks = SinkSize::ordinary;
  double softcap = 2;
  std::uint64_t seed = 1;
  double kv_scale = 0.1;                // k and v hold N(0, kv_scale^2); q holds N(0, 1)
  std::optional<double> softmax_scale;  // default: 1 / (kv_scale * sqrt(head_dim_qk)), for scores
                                        // of N(0, 1)

  int batch() const { return static_cast<int>(q_lens.size()); }
  int q_len(int request) const { return q_lens[static_cast<std::size_t>(request)]; }
  int kv_len(int request) const { return kv_lens[static_cast<std::size_t>(request)]; }
};

// "prefill 128/128 h 12/4 bf16 thd causal | b 3 s_q 0-129 s_k 5-300 | ragged …", for tables.
std::string describe(const PrefillCase& prefill_case);

// The position of a request's first query, and of its first key.
std::int64_t first_query_position(const PrefillCase& prefill_case, int request);
std::int64_t first_key_position(const PrefillCase& prefill_case, int request);

// Whether query `query` of a request sees key `key` of it, as the descriptor's mask and
// block-sparse layout say. An additive mask hides with -inf.
bool is_visible(const PrefillCase& prefill_case, int request, int head, int query, int key);

// The keys that any query of the request may see by position: outside of them lies what no kernel
// may let through. Masks that are read from memory, and block-sparse layouts, are not asked.
KeyRange reachable_keys(const PrefillCase& prefill_case, int request);

// The same of queries [first_query, last_query] of it.
KeyRange reachable_keys(const PrefillCase& prefill_case, int request, int first_query,
                        int last_query);

// Outputs and LSEs that a call computes.
std::int64_t count_values(const PrefillCase& prefill_case);

}  // namespace attnjit::check
