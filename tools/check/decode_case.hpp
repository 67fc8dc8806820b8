// One decode problem, described: everything a correctness check or a benchmark needs to build its
// tensors again. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attnjit/attention_descriptor.hpp"

namespace attnjit::check {

// How a cache's pages lie in memory.
enum class CacheArrangement {
  pool,         // one pool for all requests, in the descriptor's layout tag
  per_request,  // [batch, num_kv_heads, pages, page_size, head_dim]: block ids count within a
                // request
  layered,      // a pool whose pages are interleaved with another layer's
};
std::string_view to_string(CacheArrangement);

// Where the plan's lengths come from.
enum class PlanSource {
  device,  // the schedule kernel
  host,    // the host planner
  stale,   // the schedule kernel, from other lengths than the run's
};
std::string_view to_string(PlanSource);

// How large the sinks of a descriptor with sinks are, beside scores of N(0, 1). Each head has its
// own.
enum class SinkSize {
  ordinary,  // as the LSE of a few to a thousand keys
  large,     // far above it: outputs vanish
  negative,  // far below it: as without sinks
  infinite,  // a third each of +inf, -inf and ordinary ones
};
std::string_view to_string(SinkSize);

struct DecodeCase {
  AttentionDescriptor descriptor;
  int seqlen_q = 1;
  std::vector<int> seq_lens;  // keys per request
  CacheArrangement arrangement = CacheArrangement::pool;
  PlanSource plan = PlanSource::device;
  std::uint64_t seed = 1;
  double kv_scale = 0.1;  // the cache holds N(kv_offset, kv_scale^2); q holds N(0, 1)
  double kv_offset = 0;
  int mask_shortage = 0;  // keys of the longest request that a materialized mask leaves out
  std::optional<double> softmax_scale;  // default: 1 / (kv_scale * sqrt(head_dim_qk)), for scores
                                        // of N(0, 1)
  SinkSize sinks = SinkSize::ordinary;

  int batch() const { return static_cast<int>(seq_lens.size()); }
};

// "mla 576/512 h16 bf16 page 64 | b 6 s_q 2 s_k 20…4096 | pool device", for tables.
std::string describe(const DecodeCase& decode_case);

// Keys [begin, end) that a query sees by its place and the mask's shape; a materialized mask may
// hide more of them.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end > begin ? end - begin : 0; }
};

// Of query `query` of a request of `seqlen_kv` keys.
KeyRange visible_keys(const DecodeCase& decode_case, int seqlen_kv, int query);

// The lengths of a case with every second one shorter, from `parity` on: a third; or 0 where a
// window hides the first keys, whose pages are not there for a shorter request to see.
std::vector<int> with_shorter_mates(const DecodeCase& decode_case, std::size_t parity);

// A batch of `batch` requests of `length` keys each.
std::vector<int> equal_lengths(int batch, int length);

// Random lengths between 1 and 2 * mean, deterministic in `seed`.
std::vector<int> varied_lengths(int batch, int mean, std::uint64_t seed);

}  // namespace attnjit::check
