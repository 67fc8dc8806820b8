// fp32 to fp8, rounded to nearest even and saturated: what lies past the largest finite value, the
// infinities too, becomes that value; NaN becomes 0x7f. PTX ISA 5.2.3, "Alternate Floating-Point
// Data Formats".
#pragma once

#include "device/config_types.cuh"

// A value of 8 bits: sign, exponent, mantissa. Its smallest steps are 2^(1 - bias - mantissa_bits).
template <DataType type>
struct Fp8Format {
  static_assert(type == DataType::fp8_e4m3 || type == DataType::fp8_e5m2, "fp8 types only");
  static constexpr bool is_e4m3 = type == DataType::fp8_e4m3;
  static constexpr int mantissa_bits = is_e4m3 ? 3 : 2;
  static constexpr int bias = is_e4m3 ? 7 : 15;
  static constexpr unsigned largest_code = is_e4m3 ? 0x7e : 0x7b;  // 448, 57344
};

// By integers and one addition, where there is no instruction.
template <DataType type>
__device__ __forceinline__ unsigned to_fp8_portable(float value) {
  using Format = Fp8Format<type>;
  constexpr unsigned infinity_bits = 0x7f800000u;
  constexpr int dropped_bits = 23 - Format::mantissa_bits;
  constexpr unsigned exponent_shift = (127u - Format::bias) << 23;
  constexpr unsigned largest_bits = (Format::largest_code << dropped_bits) + exponent_shift;
  constexpr unsigned first_normal_bits = (1u << 23) + exponent_shift;
  const unsigned bits = __float_as_uint(value);
  const unsigned sign = bits >> 24 & 0x80u;
  unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > infinity_bits)
    return 0x7fu;
  if (magnitude > largest_bits)
    magnitude = largest_bits;
  if (magnitude < first_normal_bits) {
    // A number whose last place is the format's smallest step: the addition rounds, and what it
    // adds to the bits is the code.
    constexpr unsigned step_bits = (127u + 24u - Format::bias - Format::mantissa_bits) << 23;
    return sign |
           (__float_as_uint(__uint_as_float(magnitude) + __uint_as_float(step_bits)) - step_bits);
  }
  const unsigned is_odd = magnitude >> dropped_bits & 1u;
  const unsigned rounded = magnitude + (1u << (dropped_bits - 1)) - 1u + is_odd;
  return sign | (rounded - exponent_shift) >> dropped_bits;
}

// {low, high} packed, low in bits 0-7.
template <DataType type>
__device__ __forceinline__ unsigned pack_fp8_pair(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short packed;
  if constexpr (Fp8Format<type>::is_e4m3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(high), "f"(low));
  }
  return packed;
#else
  return to_fp8_portable<type>(low) | to_fp8_portable<type>(high) << 8;
#endif
}
