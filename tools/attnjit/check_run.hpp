// The cases of `attnjit check`, and running them one after the other. One GPU, one thread at a
// time.
#pragma once

#include <string>
#include <vector>

#include "attnjit/attention_runtime.hpp"
#include "check_case.hpp"
#include "contract_run.hpp"
#include "reference_comparison.hpp"

namespace attnjit {

struct CheckedCase {
  CheckCase check_case;
  check::CheckResult result;
  std::string command;  // of a fuzzed case, which runs it again; else empty
};

struct CheckReport {
  std::string card;  // empty if none was needed
  std::vector<CheckedCase> cases;
  int num_failed = 0;                            // of the cases
  std::vector<CheckedRequirement> requirements;  // of the contract
};

// Whether every case passed and every requirement is met.
bool has_passed(const CheckReport& report);

// One decode step for each descriptor: `batch` requests of mixed lengths up to `seqlen_kv`, an
// empty one among them if there are several; of token-sparse ones, over the descriptor's topk.
std::vector<CheckCase> step_cases(const std::vector<AttentionDescriptor>& descriptors, int batch,
                                  int seqlen_kv);

// The cases whose group or description holds `text`.
std::vector<CheckCase> filter_cases(std::vector<CheckCase> cases, const std::string& text);

// Prepares all kernels (in parallel), then runs the cases; progress on stderr. What a case throws
// is its failure; without a usable GPU throws DriverError.
CheckReport run_cases(AttentionRuntime& runtime, int device, const std::vector<CheckCase>& cases);

}  // namespace attnjit
