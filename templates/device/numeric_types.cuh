// 16-bit floating-point elements as plain bits, and their conversions.
#pragma once

#include "device/config_types.cuh"

// Bits of a bf16 or fp16 value. PTX ISA 5.2.3, "Alternate Floating-Point Data Formats".
using Element = unsigned short;

template <DataType type>
constexpr bool is_fp8 = type == DataType::fp8_e4m3 || type == DataType::fp8_e5m2;

// {low, high} rounded to nearest even and packed, low in bits 0-15.
template <DataType type>
__device__ __forceinline__ unsigned pack_pair(float low, float high) {
  unsigned packed;
  if constexpr (type == DataType::bf16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  } else {
    static_assert(type == DataType::fp16, "16-bit element types only");
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  }
  return packed;
}

// The two values of pack_pair, low first.
template <DataType type>
__device__ __forceinline__ float2 unpack_pair(unsigned packed) {
  float2 values;
  if constexpr (type == DataType::bf16) {
    values.x = __uint_as_float(packed << 16);
    values.y = __uint_as_float(packed & 0xffff0000u);
  } else {
    static_assert(type == DataType::fp16, "16-bit element types only");
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; "
        "cvt.f32.f16 %1, high; }"
        : "=f"(values.x), "=f"(values.y)
        : "r"(packed));
  }
  return values;
}

// The value at `index` of an array of `type`.
template <DataType type>
__device__ __forceinline__ float load_float(const void* base, long long index) {
  if constexpr (type == DataType::fp32) {
    return static_cast<const float*>(base)[index];
  } else if constexpr (type == DataType::bf16) {
    return __uint_as_float(static_cast<unsigned>(static_cast<const Element*>(base)[index]) << 16);
  } else {
    static_assert(type == DataType::fp16, "floating-point types only");
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<const Element*>(base)[index]));
    return value;
  }
}
