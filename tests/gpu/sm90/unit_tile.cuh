// What the unit kernels share: poisoned shared memory, an operand's copy, its descriptors.
#pragma once

#include "device/barrier_sm90.cuh"
#include "device/matrix_descriptor_sm90.cuh"
#include "device/shared_address.cuh"
#include "device/tensor_copy_sm90.cuh"
#include "unit_arguments.h"

// All bits set: NaN in every floating-point type.
__device__ __forceinline__ void poison(unsigned char* shared, unsigned bytes) {
  for (unsigned i = threadIdx.x * 4; i < bytes; i += blockDim.x * 4)
    *reinterpret_cast<unsigned*>(shared + i) = 0xffffffff;
  fence_proxy_async();  // before the copies that follow the caller's __syncthreads
}

__device__ __forceinline__ void load_operand(unsigned shared, const TensorMap& map,
                                             const attnjit::sm90::Operand& operand,
                                             unsigned barrier) {
  for (int i = 0; i < operand.num_boxes; ++i)
    load_tensor(shared + operand.tile_offset + i * operand.box_bytes, map, barrier,
                i * operand.box_columns, 0);
}

__device__ __forceinline__ unsigned long long describe(unsigned shared,
                                                       const attnjit::sm90::Operand& operand,
                                                       int step) {
  const unsigned long long first = make_matrix_descriptor(
      shared + operand.start_offset, operand.leading_bytes, operand.stride_bytes, operand.swizzle);
  return advance_matrix_descriptor(first, step / operand.steps_per_tile * operand.tile_bytes +
                                              step % operand.steps_per_tile * operand.step_bytes);
}
