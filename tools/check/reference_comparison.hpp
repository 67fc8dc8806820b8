// The outputs of a call against its fp64 reference. One thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "attnjit/device_memory.hpp"
#include "check_arguments.h"
#include "check_kernels.hpp"
#include "decode_problem.hpp"
#include "reference_attention.hpp"

namespace attnjit::check {

// The contract's tolerances: |error| <= absolute + relative * |reference|, of the LSE as
// lse_tolerance.h says, and the distance of the whole output from the reference,
// 1 - 2 sum(xy) / sum(x^2 + y^2).
struct Tolerance {
  double absolute = 8e-4;
  double relative = 2.01 / 128;
  double lse_absolute = 1e-6;
  double lse_relative = 8.01 / 65536;
  double cosine_distance = 5e-6;

  // What fp32 sums of `head_dim` products may be off by, relative to the products' magnitudes.
  static double score_rounding(int head_dim);
};

struct CheckResult {
  bool passed = false;
  Comparison comparison = {};
  double cosine_distance = 0;
  std::string failure;  // what is wrong, empty if passed
};

// Compares what is in the call's out and lse with what the reference made of the call. Throws
// CudaError.
Comparison compare(const CheckKernels& kernels, const ReferenceCall& call,
                   const ReferenceResult& reference, const DeviceStream& stream,
                   const Tolerance& tolerance);

// The same with a reference of its own.
Comparison compare_with_reference(const CheckKernels& kernels, const ReferenceCall& reference,
                                  const DeviceStream& stream, const Tolerance& tolerance);
Comparison compare_with_reference(const CheckKernels& kernels, const DecodeProblem& problem,
                                  const DeviceStream& stream, const Tolerance& tolerance);

// What a comparison means; `num_values` outputs and LSEs had to be compared.
CheckResult judge(const Comparison& comparison, std::int64_t num_values,
                  const Tolerance& tolerance);

}  // namespace attnjit::check
