// The elements of a prefill's output, of 16 bits or of fp8: rounded, and stored in pairs. For
// kernels whose config has dtype_out.
#pragma once

#include "kernel_config.cuh"

#include "device/fp8_numeric.cuh"
#include "device/numeric_types.cuh"

// How a value lies in memory, and eight of them.
template <bool is_byte>
struct StoredTypes {
  using Value = Element;
  using Chunk = uint4;
};
template <>
struct StoredTypes<true> {
  using Value = unsigned char;
  using Chunk = uint2;
};
using Output = StoredTypes<is_fp8<config::dtype_out>>::Value;
using OutputChunk = StoredTypes<is_fp8<config::dtype_out>>::Chunk;

__device__ __forceinline__ void store_pair(Output* place, float low, float high) {
  if constexpr (is_fp8<config::dtype_out>) {
    *reinterpret_cast<unsigned short*>(place) =
        static_cast<unsigned short>(pack_fp8_pair<config::dtype_out>(low, high));
  } else {
    *reinterpret_cast<unsigned*>(place) = pack_pair<config::dtype_out>(low, high);
  }
}
