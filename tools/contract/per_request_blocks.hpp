// The caches of FlashMLA's tensor-shape reference, [B, H, Nblk, 64, D] of each request, over those
// of checked problems in the arrangement per_request. One thread at a time.
#pragma once

#include "host_tensor.hpp"

namespace attnjit::contract {

// [B, Nblk, H, 64, D] -> [B, H, Nblk, 64, D].
TensorView heads_first(const TensorView& cache);

// The block table with as many columns as a request has blocks in `cache` [B, Nblk, H, 64, D]. What
// lies past a request's blocks names none. Throws CudaError.
TensorView per_request_table(const TensorView& block_table, const TensorView& cache,
                             CallMemory& memory, const DeviceStream& stream);

}  // namespace attnjit::contract
