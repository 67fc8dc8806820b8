// Runs decode problems and compares them with the fp64 reference. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attnjit/attention_runtime.hpp"
#include "attnjit/device_memory.hpp"
#include "check_kernels.hpp"
#include "decode_case.hpp"
#include "decode_problem.hpp"
#include "decode_suite.hpp"
#include "reference_comparison.hpp"

namespace attnjit::check {

class DecodeChecker {
 public:
  DecodeChecker(AttentionRuntime& runtime, int device);

  // As the case's kind says.
  CheckResult check(const SuiteCase& suite_case);

  // Runs the case on NaN-poisoned outputs and workspace and compares. Throws what preparing and
  // running throw.
  CheckResult check(const DecodeCase& decode_case);

  // The same with `kernels` of the case's descriptor.
  CheckResult check(const DecodeCase& decode_case,
                    const std::shared_ptr<const PreparedDecode>& kernels);

 private:
  // The pages in two orders: passed if outputs and LSEs are equal to the bit.
  CheckResult check_permutation(const DecodeCase& decode_case);

  // Each request alone, in pairs, in halves of the batch and in the whole of it, and beside mates
  // of other lengths: passed if its output and LSE are always equal to the bit.
  CheckResult check_batch_invariance(const DecodeCase& decode_case);

  // A case whose scale is 0 and whose values are all 1 in bf16, against what that comes to.
  CheckResult check_sink_oracle(const DecodeCase& decode_case);

  // Requests [first, first + count) of the problem.
  void run(DecodeProblem& problem, const std::shared_ptr<const PreparedDecode>& kernels, int first,
           int count);

  AttentionRuntime& runtime_;
  DeviceStream stream_;
  CheckKernels kernels_;
  Tolerance tolerance_;
};

}  // namespace attnjit::check
