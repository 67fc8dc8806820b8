// cp.async: copies from global to shared memory that bypass registers, and those of 16 bytes L1.
// PTX ISA 9.7.9.25.3, "Non-bulk copy".
#pragma once

#include "device/shared_address.cuh"

// Copies 16 bytes, or writes 16 zeros when `valid` is false; `source` must be mapped memory only if
// valid.
__device__ __forceinline__ void copy_async_16(void* destination, const void* source, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(destination)),
               "l"(source), "r"(valid ? 16 : 0)
               : "memory");
}

// The same to an address in shared memory.
__device__ __forceinline__ void copy_async_16(unsigned destination, const void* source,
                                              bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(destination), "l"(source),
               "r"(valid ? 16 : 0)
               : "memory");
}

// The same of 8 bytes, and of 4, through L1.
__device__ __forceinline__ void copy_async_8(void* destination, const void* source, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(destination)),
               "l"(source), "r"(valid ? 8 : 0)
               : "memory");
}
__device__ __forceinline__ void copy_async_4(void* destination, const void* source, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(destination)),
               "l"(source), "r"(valid ? 4 : 0)
               : "memory");
}

__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Returns when at most `pending` of this thread's committed groups are unfinished.
template <int pending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}
