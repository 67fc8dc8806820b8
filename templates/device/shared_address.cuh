// Addresses in shared memory as 32-bit numbers, which is what most instructions on it take.
#pragma once

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
