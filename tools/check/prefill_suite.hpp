// The correctness grid of the prefill operations: which cases `attnjit check` runs. Pure;
// thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "prefill_case.hpp"

namespace attnjit::check {

struct PrefillSuiteCase {
  std::string group;            // a row of the closing table
  bool is_permutation = false;  // pages in two orders, equal to the bit; else against fp64
  PrefillCase prefill_case;
};

// Head dims and ratios; lengths; layouts, page sizes and arrangements; batches; scales; permuted
// pages; and all of prefill_mask_suite, prefill_composition_suite and prefill_fp8_suite.
std::vector<PrefillSuiteCase> prefill_suite();

// Query and key tokens of a request each.
using Lengths = std::vector<std::pair<int, int>>;

// Tiles, partial tiles, nothing at all, and more queries than keys.
Lengths mixed_lengths();

// Causal, over ragged keys; and the same over pages of 64 tokens.
AttentionDescriptor ragged_descriptor(int num_q_heads, int num_kv_heads, int head_dim);
AttentionDescriptor paged_descriptor(int num_q_heads, int num_kv_heads, int head_dim);

// The same call under another mask that needs no parameter.
AttentionDescriptor with_mask(AttentionDescriptor descriptor, MaskKind mask);

// Adds a case and returns it, for what is special about it. Its seed counts the cases.
PrefillCase& add_prefill_case(std::vector<PrefillSuiteCase>& suite, const std::string& group,
                              const AttentionDescriptor& descriptor, const Lengths& lengths);

}  // namespace attnjit::check
