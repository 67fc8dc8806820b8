// The fp32 scales that an fp8 tensor of a checked problem has, and the same tensor in fp32 for the
// reference to read: what is stored times its scale, exactly. One thread at a time.
#pragma once

#include <cstdint>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/device_memory.hpp"
#include "attnjit/tensor_view.hpp"
#include "check_arguments.h"
#include "prefill_case.hpp"

namespace attnjit::check {

// How the scales of a tensor lie: of q if `is_query`, else of k or v.
struct ScaleShape {
  ScaleGrain grain = ScaleGrain::none;
  bool is_query = false;
  bool heads_share = false;  // of grains per_token and per_block
};

// Those of a case's q, and of its k and v.
ScaleShape query_scale_shape(const PrefillCase& prefill_case);
ScaleShape key_scale_shape(const PrefillCase& prefill_case);

// Of no memory yet, contiguous; empty if the grain asks for none.
TensorView scales_view(const AttentionDescriptor& descriptor, const ScaleShape& shape,
                       const TensorView& tensor, int batch);

struct ScaledTensor {
  TensorView scales;  // of no memory unless the grain asks for some
  DeviceBuffer scale_buffer;
  DeviceBuffer values;  // fp32, where the tensor has its elements
};

// For `tensor`, of `bytes` bytes from its first element to its last; everything poisoned. Empty if
// the tensor is not fp8. Throws CudaError.
ScaledTensor make_scaled_tensor(const AttentionDescriptor& descriptor, const ScaleShape& shape,
                                const TensorView& tensor, std::int64_t bytes, int batch,
                                const DeviceStream& stream);

// What fill_tokens needs of it.
FillScales fill_scales(const AttentionDescriptor& descriptor, const ScaleShape& shape,
                       const ScaledTensor& scaled);

// `tensor`, or its values where it is fp8.
TensorView reference_view(const TensorView& tensor, const ScaledTensor& scaled);

}  // namespace attnjit::check
