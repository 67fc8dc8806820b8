// The correctness grid of token-sparse attention: which cases `attnjit check` runs. Pure;
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "sparse_mla_case.hpp"

namespace attnjit::check {

struct SparseMlaSuiteCase {
  std::string group;  // a row of the closing table
  SparseMlaCase sparse_case;
};

// Heads; topk; pages and query tokens; what lists hold and how long they are; second pools; sinks;
// batches; head dims and types; scales; of both operations and every encoding.
std::vector<SparseMlaSuiteCase> sparse_mla_suite();

// One step of a descriptor's model: `batch` requests, or of a prefill so many query tokens, each
// over the descriptor's topk tokens of twice as many.
SparseMlaSuiteCase sparse_mla_step(const AttentionDescriptor& descriptor, int batch);

}  // namespace attnjit::check
