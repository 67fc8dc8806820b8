// The values of partial results: rounded to the call's 16-bit element type, as the probabilities
// they come from are. An SM stores some 50 GB/s, so that 64 rows of 512 columns take 1.3 us, and
// 2.7 in fp32.
#pragma once

#include "device/numeric_types.cuh"
#include "device/softmax_math.cuh"

// What a row's accumulators are multiplied by to be stored. bf16 holds them as they are; fp16 might
// not, and takes them divided by the row's sum.
template <DataType type>
__device__ __forceinline__ float stored_factor(float sum) {
  return type == DataType::bf16 || sum == 0.0f ? 1.0f : reciprocal_approximate(sum);
}

// Its inverse.
template <DataType type>
__device__ __forceinline__ float restored_factor(float sum) {
  return type == DataType::bf16 || sum == 0.0f ? 1.0f : sum;
}

// A lane's four values of a line.
template <DataType type>
__device__ __forceinline__ void store_in_line(Element* place, float v0, float v1, float v2,
                                              float v3) {
  *reinterpret_cast<uint2*>(place) = make_uint2(pack_pair<type>(v0, v1), pack_pair<type>(v2, v3));
}

template <DataType type>
__device__ __forceinline__ float4 unpack_values(const uint2& packed) {
  const float2 first = unpack_pair<type>(packed.x);
  const float2 second = unpack_pair<type>(packed.y);
  return make_float4(first.x, first.y, second.x, second.y);
}
