// The fp64 reference of an attention call, computed on the GPU straight from the definition:
// prefill in every layout and mask, and decode as a prefill of few queries. One thread at a time.
#pragma once

#include <cstdint>

#include "attnjit/device_memory.hpp"
#include "attnjit/paged_decode.hpp"
#include "attnjit/prefill.hpp"
#include "check_arguments.h"
#include "check_kernels.hpp"

namespace attnjit::check {

// A call, with what its tensors on the device do not tell the host.
struct ReferenceCall {
  AttentionDescriptor descriptor;
  PrefillCall call;
  int batch = 0;
  int max_queries = 0;  // of any request
  int max_keys = 0;
  float out_scale = 1.0F;  // what `call.out_scale` holds

  // Rows of q: those of all batch indices if it is dense.
  std::int64_t num_rows() const;
};

// Decode is prefill over the paged cache with as many queries for each request.
PrefillCall as_prefill(const DecodeCall& call);

struct ReferenceResult {
  DeviceBuffer out;  // double [rows of q, num_q_heads, head_dim_v]
  DeviceBuffer lse;  // double [rows of q, num_q_heads], natural logarithm; every byte is 0xff where
                     // no query stands
  DeviceBuffer magnitude;  // double [rows of q, num_q_heads]: no score that the row sees has
                           // products whose magnitudes add up to more
};

// All but scratch memory and results. Touches no memory that the call points to: pure.
ReferenceArguments make_reference_arguments(const ReferenceCall& reference);

// Queues the reference on `stream` and waits for it. Throws CudaError.
ReferenceResult compute_reference(const CheckKernels& kernels, const ReferenceCall& reference,
                                  const DeviceStream& stream);

}  // namespace attnjit::check
