// The fp64 reference of a decode problem, computed on the GPU straight from the definition. One
// thread at a time.
#pragma once

#include "attnjit/device_memory.hpp"
#include "check_kernels.hpp"
#include "decode_problem.hpp"

namespace attnjit::check {

struct ReferenceResult {
  DeviceBuffer out;  // double [batch, seqlen_q, num_q_heads, head_dim_v]
  DeviceBuffer lse;  // double [batch, seqlen_q, num_q_heads], natural logarithm
};

// Queues the reference on `stream` and waits for it. Throws CudaError.
ReferenceResult compute_reference(const CheckKernels& kernels, const DecodeProblem& problem,
                                  const DeviceStream& stream);

}  // namespace attnjit::check
