// Device tensors of checked problems: poisoned, then filled with random tokens where something sees
// them. One thread at a time.
#pragma once

#include <cstdint>

#include "attnjit/device_memory.hpp"
#include "check_arguments.h"
#include "check_kernels.hpp"

namespace attnjit::check {

// NaN in every floating-point type in use.
DeviceBuffer poisoned_buffer(const DeviceStream& stream, std::int64_t bytes);

// Queues the filling of `batch` requests' tokens on `stream`. Throws CudaError.
void fill_tokens(const CheckKernels& kernels, const FillTokensArguments& arguments, int batch,
                 const DeviceStream& stream);

}  // namespace attnjit::check
