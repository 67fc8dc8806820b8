// The cases of `attnjit check`, and running them one after the other. One GPU, one thread at a
// time.
#pragma once

#include <string>
#include <vector>

#include "attnjit/model_plan.hpp"
#include "decode_checker.hpp"
#include "decode_suite.hpp"

namespace attnjit {

struct CheckedCase {
  check::SuiteCase suite_case;
  check::CheckResult result;
};

struct CheckReport {
  std::string card;
  std::vector<CheckedCase> cases;
  int num_failed = 0;
};

// One decode step for each descriptor: `batch` requests of mixed lengths up to `seqlen_kv`, an
// empty one among them if there are several.
std::vector<check::SuiteCase> step_cases(const std::vector<AttentionDescriptor>& descriptors,
                                         int batch, int seqlen_kv);

// The cases whose group or description holds `text`. Throws UsageError if none does.
std::vector<check::SuiteCase> filter_cases(std::vector<check::SuiteCase> cases,
                                           const std::string& text);

// Prepares all kernels (in parallel), then runs the cases; progress on stderr. What a case throws
// is its failure; without a usable GPU throws DriverError.
CheckReport run_cases(AttentionRuntime& runtime, int device,
                      const std::vector<check::SuiteCase>& cases);

}  // namespace attnjit
