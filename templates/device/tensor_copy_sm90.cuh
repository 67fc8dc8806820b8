// Asynchronous copies from global to shared memory that one thread starts: boxes of a tensor (TMA)
// and plain bytes. They complete on an mbarrier, which must expect their bytes. Coordinates count
// elements, innermost first; what lies outside the tensor is written as zeros and counts as bytes.
// Destinations are addresses in shared memory of this block, aligned to 128 (a tensor's) or 16.
#pragma once

#include "interface/tensor_map.h"

using attnjit::kernel_interface::TensorMap;

// The map must be a __grid_constant__ parameter. PTX ISA 9.7.9.15, prefetch.
__device__ __forceinline__ void prefetch_tensor_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// PTX ISA 9.7.9.25.5.2, cp.async.bulk.tensor.
__device__ __forceinline__ void load_tensor(unsigned destination, const TensorMap& map,
                                            unsigned barrier, int x0, int x1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(destination),
      "l"(&map), "r"(barrier), "r"(x0), "r"(x1)
      : "memory");
}

__device__ __forceinline__ void load_tensor(unsigned destination, const TensorMap& map,
                                            unsigned barrier, int x0, int x1, int x2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(destination),
      "l"(&map), "r"(barrier), "r"(x0), "r"(x1), "r"(x2)
      : "memory");
}

__device__ __forceinline__ void load_tensor(unsigned destination, const TensorMap& map,
                                            unsigned barrier, int x0, int x1, int x2, int x3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(destination),
      "l"(&map), "r"(barrier), "r"(x0), "r"(x1), "r"(x2), "r"(x3)
      : "memory");
}

// How long L2 keeps what a copy brings: first to go, or no say in it. PTX ISA 9.7.9.14,
// createpolicy.
__device__ __forceinline__ unsigned long long make_cache_policy(bool evict_first) {
  unsigned long long first;
  unsigned long long unchanged;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
  asm("createpolicy.fractional.L2::evict_unchanged.b64 %0, 1.0;" : "=l"(unchanged));
  return evict_first ? first : unchanged;
}

__device__ __forceinline__ void load_tensor(unsigned destination, const TensorMap& map,
                                            unsigned barrier, unsigned long long policy, int x0,
                                            int x1, int x2, int x3, int x4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(destination),
      "l"(&map), "r"(barrier), "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "l"(policy)
      : "memory");
}

// `bytes` and both addresses are multiples of 16. PTX ISA 9.7.9.25.4.1, cp.async.bulk.
__device__ __forceinline__ void load_bytes(unsigned destination, const void* source, unsigned bytes,
                                           unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(destination),
      "l"(source), "r"(bytes), "r"(barrier)
      : "memory");
}

// Brings bytes to L2, nowhere else; `bytes` and the address are multiples of 16. PTX ISA
// 9.7.9.25.4.3, cp.async.bulk.prefetch.
__device__ __forceinline__ void prefetch_bytes(const void* source, unsigned bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(source), "r"(bytes) : "memory");
}
