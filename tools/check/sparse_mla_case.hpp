// One problem of token-sparse attention, described: everything that a correctness check needs to
// build its tensors again. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "attnjit/attention_descriptor.hpp"
#include "sink_values.hpp"

namespace attnjit::check {

// What the lists of indices hold.
enum class IndexPattern {
  mixed,       // tokens in any order, some of them twice; an eighth names none: -1, negative, past
               // the pool's end
  distinct,    // tokens, each once as long as there are enough; then what names none
  repeated,    // a few tokens again and again
  empty_rows,  // of every other query token nothing that names a token; else mixed
  nothing,     // nothing that names a token
};
std::string_view to_string(IndexPattern);

// How many indices of each list are looked at. What is behind names tokens that hold NaN, or none.
enum class LengthPattern { all, given, partial, zero };
std::string_view to_string(LengthPattern);

// A pool of tokens and the lists into it.
struct TokenPoolCase {
  int topk = 0;  // 0: there is no such pool
  int num_tokens = 0;
  int page_size = 1;  // of a decode
  IndexPattern pattern = IndexPattern::mixed;
  LengthPattern lengths = LengthPattern::all;  // all: no tensor; given: all, by a tensor
};

struct SparseMlaCase {
  AttentionDescriptor descriptor;
  int batch = 1;     // of a prefill: query tokens
  int seqlen_q = 1;  // of a prefill: 1
  TokenPoolCase pool;
  TokenPoolCase extra_pool;    // of a decode
  bool has_page_gaps = false;  // bytes of nobody between pages, or, of a prefill, between tokens
  bool wants_max_logits = true;
  SinkSize sinks = SinkSize::ordinary;
  std::uint64_t seed = 1;
  double kv_scale = 0.1;                // tokens hold about N(0, kv_scale^2); q holds N(0, 1)
  std::optional<double> softmax_scale;  // default: 1 / (kv_scale * sqrt(head_dim_qk)), for scores
                                        // of N(0, 1)

  int num_query_tokens() const { return batch * seqlen_q; }
};

// "sparse_mla_decode 576/512 h 16 bf16 fp8_656 | b 3 s_q 2 | topk 100 of 300, page 61, mixed …".
std::string describe(const SparseMlaCase& sparse_case);

float softmax_scale_of(const SparseMlaCase& sparse_case);

// Outputs and LSEs that a call computes.
std::int64_t count_values(const SparseMlaCase& sparse_case);

}  // namespace attnjit::check
