// Runs prefill problems and compares them with the fp64 reference. One thread at a time.
#pragma once

#include <memory>

#include "attnjit/attention_runtime.hpp"
#include "attnjit/device_memory.hpp"
#include "check_kernels.hpp"
#include "prefill_problem.hpp"
#include "prefill_suite.hpp"
#include "reference_comparison.hpp"

namespace attnjit::check {

class PrefillChecker {
 public:
  PrefillChecker(AttentionRuntime& runtime, int device);

  // As the case's kind says. Throws what preparing and running throw.
  CheckResult check(const PrefillSuiteCase& suite_case);

  // Runs the case on NaN-poisoned outputs and compares; then again: equal to the bit, and nothing
  // written between and around its rows; then with the keys in 2 to 32 parts.
  CheckResult check(const PrefillCase& prefill_case);

 private:
  // The same with the keys in parts; the worse of both results.
  CheckResult check_split(PrefillProblem& problem, const PreparedPrefill& kernel,
                          const ReferenceResult& reference, const CheckResult& unsplit);

  // The pages in two orders: passed if outputs and LSEs are equal to the bit.
  CheckResult check_permutation(const PrefillCase& prefill_case);

  // On poisoned outputs; the bytes of these.
  std::vector<unsigned char> run(PrefillProblem& problem, const PreparedPrefill& kernel);

  AttentionRuntime& runtime_;
  DeviceStream stream_;
  CheckKernels kernels_;
  Tolerance tolerance_;
};

}  // namespace attnjit::check
