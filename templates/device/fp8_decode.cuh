// fp8 to wider types, exactly: by bits and one multiplication, with no instruction that sm_80
// lacks. NaN stays NaN, infinities of e5m2 stay infinite. PTX ISA 5.2.3, "Alternate Floating-Point
// Data Formats".
#pragma once

#include "device/config_types.cuh"
#include "device/numeric_types.cuh"

// The value of the code in bits 0-7; what is above them is ignored. Exponent and mantissa go where
// fp32 has them, as a number that is too small by the difference of the biases, subnormal or not.
template <DataType type>
__device__ __forceinline__ float fp8_to_float(unsigned code) {
  static_assert(type == DataType::fp8_e4m3 || type == DataType::fp8_e5m2, "fp8 types only");
  constexpr bool is_e4m3 = type == DataType::fp8_e4m3;
  constexpr int mantissa_shift = is_e4m3 ? 20 : 21;
  constexpr unsigned bias_factor_bits = (127u + (is_e4m3 ? 120u : 112u)) << 23;
  // Codes from here on are no finite numbers: one NaN of e4m3, an infinity and NaNs of e5m2.
  constexpr unsigned first_special = (is_e4m3 ? 0x7fu : 0x7cu) << mantissa_shift;
  const unsigned sign = code << 24 & 0x80000000u;
  const unsigned magnitude = (code & 0x7fu) << mantissa_shift;
  const float value = __uint_as_float(sign | magnitude) * __uint_as_float(bias_factor_bits);
  return magnitude < first_special
             ? value
             : __uint_as_float(sign | (is_e4m3 ? 0x7fc00000u : 0x7f800000u | magnitude));
}

// Two bf16 times 2^exponent, which must lose nothing; subnormal ones too. PTX ISA 9.7.4, fma: the
// product with -0 added, which keeps the sign of a zero.
template <int exponent>
__device__ __forceinline__ unsigned scale_bf16_pair(unsigned pair) {
#if defined(__CUDA_ARCH__)
  constexpr unsigned factor = (127u + exponent) << 7;
  unsigned result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(result)
      : "r"(pair), "r"(factor << 16 | factor), "r"(0x80008000u));
  return result;
#else  // a host that tests what calls this
  const float factor = __uint_as_float((127u + exponent) << 23);
  const unsigned low = __float_as_uint(__uint_as_float(pair << 16) * factor);
  return low >> 16 | __float_as_uint(__uint_as_float(pair & 0xffff0000u) * factor);
#endif
}

// As fp8_to_float, of two codes at once: in bits 8-15 and 24-31 of `codes`, whose others are
// ignored, to bf16.
template <DataType type>
__device__ __forceinline__ unsigned decode_fp8_lanes(unsigned codes) {
  constexpr bool is_e4m3 = type == DataType::fp8_e4m3;
  constexpr int shift = is_e4m3 ? 4 : 3;
  const unsigned magnitude = (codes & 0x7f007f00u) >> shift;
  constexpr int exponent = is_e4m3 ? 120 : 112;
  const unsigned value = scale_bf16_pair<exponent>(magnitude | (codes & 0x80008000u));
  // Only what is no finite number carries into this bit; its exponent becomes all ones.
  constexpr unsigned step = is_e4m3 ? 0x00100010u : 0x00800080u;
  constexpr unsigned carry = is_e4m3 ? 0x08000800u : 0x10001000u;
  constexpr int up = is_e4m3 ? 4 : 3;
  const unsigned special = (magnitude + step) & carry;
  return value | ((special << up) - (special >> (8 - up)));
}

// The two codes in bits 0-15 as {low, high} of a 16-bit type, packed; both types hold every value
// exactly.
template <DataType type, DataType element>
__device__ __forceinline__ unsigned decode_fp8_pair(unsigned codes) {
  if constexpr (element == DataType::bf16) {
    return decode_fp8_lanes<type>(__byte_perm(codes, 0, 0x1404));
  } else {
    return pack_pair<element>(fp8_to_float<type>(codes), fp8_to_float<type>(codes >> 8));
  }
}

// The four codes in bits 0-31, first in bits 0-7, as two such pairs.
template <DataType type, DataType element>
__device__ __forceinline__ uint2 decode_fp8_quad(unsigned codes) {
  return make_uint2(decode_fp8_pair<type, element>(codes),
                    decode_fp8_pair<type, element>(codes >> 16));
}

// The same times `scale`: the product in fp32, rounded.
template <DataType type, DataType element>
__device__ __forceinline__ uint2 scale_fp8_quad(unsigned codes, float scale) {
  return make_uint2(
      pack_pair<element>(fp8_to_float<type>(codes) * scale, fp8_to_float<type>(codes >> 8) * scale),
      pack_pair<element>(fp8_to_float<type>(codes >> 16) * scale,
                         fp8_to_float<type>(codes >> 24) * scale));
}

// 2^(code - 127): a scale of e8m0, NaN of code 255. PTX ISA 5.2.3, "ue8m0".
__device__ __forceinline__ float e8m0_to_float(unsigned code) {
  constexpr unsigned smallest_bits = 0x00400000u;  // 2^-127, which has no exponent of its own
  const unsigned bits = code == 0u ? smallest_bits : code << 23;
  return __uint_as_float(code < 255u ? bits : 0x7fc00000u);
}
