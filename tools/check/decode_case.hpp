// One decode problem, described: everything a correctness check or a benchmark needs to build its
// tensors again. A plain value.
#pragma once

#include <cstdint>
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

struct DecodeCase {
  AttentionDescriptor descriptor;
  int seqlen_q = 1;
  std::vector<int> seq_lens;  // keys per request
  CacheArrangement arrangement = CacheArrangement::pool;
  PlanSource plan = PlanSource::device;
  std::uint64_t seed = 1;
  double kv_scale = 0.1;     // the cache holds N(0, kv_scale^2); q holds N(0, 1)
  int mask_shortage = 0;     // keys of the longest request that a materialized mask leaves out
  double softmax_scale = 0;  // 0 = 1 / (kv_scale * sqrt(head_dim_qk)): scores of N(0, 1)

  int batch() const { return static_cast<int>(seq_lens.size()); }
};

// "mla 576/512 h16 bf16 page 64 | b 6 s_q 2 s_k 20…4096 | pool device", for tables.
std::string describe(const DecodeCase& decode_case);

// A batch of `batch` requests of `length` keys each.
std::vector<int> equal_lengths(int batch, int length);

// Random lengths between 1 and 2 * mean, deterministic in `seed`.
std::vector<int> varied_lengths(int batch, int mean, std::uint64_t seed);

}  // namespace attnjit::check
