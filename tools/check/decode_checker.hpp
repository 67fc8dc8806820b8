// Runs decode problems and compares them with the fp64 reference. One thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "attnjit/attention_runtime.hpp"
#include "attnjit/device_memory.hpp"
#include "check_kernels.hpp"
#include "decode_case.hpp"
#include "decode_problem.hpp"
#include "reference_comparison.hpp"

namespace attnjit::check {

struct DecodeCheckResult {
  bool passed = false;
  Comparison comparison = {};
  double cosine_distance = 0;
  std::string failure;  // what is wrong, empty if passed
};

class DecodeChecker {
 public:
  DecodeChecker(AttentionRuntime& runtime, int device);

  // Runs the case on NaN-poisoned outputs and workspace and compares. Throws what preparing and
  // running throw.
  DecodeCheckResult check(const DecodeCase& decode_case);

  // Runs the case with the pages in two orders: passed if outputs and LSEs are equal to the bit.
  DecodeCheckResult check_permutation(const DecodeCase& decode_case);

  // Runs the case, whose scale is 0 and whose values are all 1 in bf16: passed if every output is
  // keys / (keys + e^sink) and every LSE log(keys), of the keys that the query sees.
  DecodeCheckResult check_sink_oracle(const DecodeCase& decode_case);

 private:
  void run(DecodeProblem& problem);

  AttentionRuntime& runtime_;
  DeviceStream stream_;
  CheckKernels kernels_;
  Tolerance tolerance_;
};

}  // namespace attnjit::check
