// The correctness grid of paged decode: which cases `attnjit check` runs. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "decode_case.hpp"

namespace attnjit::check {

enum class CheckKind {
  reference,    // against fp64
  permutation,  // pages in two orders, equal to the bit
  batch,        // each request alone, in other batches and beside other lengths, equal to the bit
  sink_oracle,  // scale 0 and V = 1: every output is keys / (keys + e^sink)
};

struct SuiteCase {
  std::string group;  // a row of the closing table
  CheckKind kind = CheckKind::reference;
  DecodeCase decode_case;
};

// MLA over heads, batches, query tokens and lengths; GQA over head ratios; head dims; page sizes,
// layouts and arrangements; masks; edge lengths; planners; permuted pages; batch invariance;
// windows and sinks.
std::vector<SuiteCase> decode_suite();

// DeepSeek's latent attention: 576 columns of K, of which the first 512 are V.
AttentionDescriptor mla_descriptor(int num_q_heads, int max_seqlen_q);

AttentionDescriptor gqa_descriptor(int num_q_heads, int num_kv_heads, int head_dim,
                                   int max_seqlen_q);

}  // namespace attnjit::check
