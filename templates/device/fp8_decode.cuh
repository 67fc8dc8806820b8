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

// The two codes in bits 0-15 as {low, high} of a 16-bit type, packed; both types hold every value
// exactly.
template <DataType type, DataType element>
__device__ __forceinline__ unsigned decode_fp8_pair(unsigned codes) {
  const float low = fp8_to_float<type>(codes);
  const float high = fp8_to_float<type>(codes >> 8);
  if constexpr (element == DataType::bf16) {
    // Nothing to round: the upper halves are the values.
    return __byte_perm(__float_as_uint(low), __float_as_uint(high), 0x7632);
  } else {
    return pack_pair<element>(low, high);
  }
}

// The four codes in bits 0-31, first in bits 0-7, as two such pairs.
template <DataType type, DataType element>
__device__ __forceinline__ uint2 decode_fp8_quad(unsigned codes) {
  return make_uint2(decode_fp8_pair<type, element>(codes),
                    decode_fp8_pair<type, element>(codes >> 16));
}

// 2^(code - 127): a scale of e8m0, NaN of code 255. PTX ISA 5.2.3, "ue8m0".
__device__ __forceinline__ float e8m0_to_float(unsigned code) {
  constexpr unsigned smallest_bits = 0x00400000u;  // 2^-127, which has no exponent of its own
  const unsigned bits = code == 0u ? smallest_bits : code << 23;
  return __uint_as_float(code < 255u ? bits : 0x7fc00000u);
}
