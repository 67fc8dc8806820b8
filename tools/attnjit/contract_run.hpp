// Running the requirements of `attnjit check --suite contract`, one after the other. One GPU, one
// thread at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attnjit/attention_runtime.hpp"
#include "reference_comparison.hpp"
#include "requirement.hpp"

namespace attnjit {

struct CheckedRequirement {
  contract::Requirement requirement;
  std::vector<check::CheckResult> results;  // of each case
};

// All of its cases pass, there are some, and none is missing.
bool is_met(const CheckedRequirement& checked);

// Whether any case runs kernels.
bool needs_gpu(const std::vector<contract::Requirement>& requirements);

// Prepares all kernels (in parallel), then runs the cases; progress on stderr. What a case throws
// is its failure; without a usable GPU throws DriverError.
std::vector<CheckedRequirement> run_requirements(
    AttentionRuntime& runtime, int device, const std::vector<contract::Requirement>& requirements);

// The same of requirements that need no GPU: cases that do fail.
std::vector<CheckedRequirement> run_requirements(
    const std::vector<contract::Requirement>& requirements);

}  // namespace attnjit
