// Runs token-sparse problems and compares them with the fp64 reference. One thread at a time.
#pragma once

#include <vector>

#include "attnjit/attention_runtime.hpp"
#include "attnjit/device_memory.hpp"
#include "check_kernels.hpp"
#include "reference_comparison.hpp"
#include "sparse_mla_problem.hpp"

namespace attnjit::check {

class SparseMlaChecker {
 public:
  SparseMlaChecker(AttentionRuntime& runtime, int device);

  // Runs the case on NaN-poisoned outputs, over pools that hold NaN wherever no index names a
  // token, and compares out, LSE and largest scores; then over pools that hold zeros there: equal
  // to the bit, and nothing written between and behind the rows. Throws what preparing and running
  // throw.
  CheckResult check(const SparseMlaCase& sparse_case);

 private:
  std::vector<unsigned char> run(SparseMlaProblem& problem, const PreparedSparseMla& kernel);

  // `numbers` is lse or max_logits; neither is looked at if it is not given.
  Comparison compare(const SparseMlaProblem& problem, const SparseMlaReference& reference,
                     const TensorView& numbers, const DeviceBuffer& reference_numbers);

  AttentionRuntime& runtime_;
  DeviceStream stream_;
  CheckKernels kernels_;
  Tolerance tolerance_;
};

}  // namespace attnjit::check
