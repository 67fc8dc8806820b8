// One decode problem, described: everything a correctness check or a benchmark needs to build its
// tensors again. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "cache_layout.hpp"
#include "sink_values.hpp"

namespace attnjit::check {

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

// The keys that query `query` of a request of `seqlen_kv` keys sees by its place and the mask's
// shape; a materialized mask may hide more of them.
KeyRange visible_keys(const DecodeCase& decode_case, int seqlen_kv, int query);

// The lengths of a case with every second one shorter, from `parity` on: a third; or 0 where a
// window hides the first keys, whose pages are not there for a shorter request to see.
std::vector<int> with_shorter_mates(const DecodeCase& decode_case, std::size_t parity);

// A batch of `batch` requests of `length` keys each.
std::vector<int> equal_lengths(int batch, int length);

// Random lengths between 1 and 2 * mean, deterministic in `seed`.
std::vector<int> varied_lengths(int batch, int mean, std::uint64_t seed);

}  // namespace attnjit::check
