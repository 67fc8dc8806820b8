// Elements whose type is known at run time only: speed does not matter here, one kernel for all
// cases does.
#pragma once

#include "check_arguments.h"
#include "device/fp8_decode.cuh"
#include "device/fp8_numeric.cuh"
#include "device/numeric_types.cuh"

__device__ inline float load_element(const void* base, long long index, int kind) {
  using namespace attnjit::check;
  switch (kind) {
    case element_bf16:
      return load_float<DataType::bf16>(base, index);
    case element_fp16:
      return load_float<DataType::fp16>(base, index);
    case element_fp32:
      return load_float<DataType::fp32>(base, index);
    case element_fp8_e4m3:
      return fp8_to_float<DataType::fp8_e4m3>(static_cast<const unsigned char*>(base)[index]);
    case element_fp8_e5m2:
      return fp8_to_float<DataType::fp8_e5m2>(static_cast<const unsigned char*>(base)[index]);
    default:
      return static_cast<const unsigned char*>(base)[index];
  }
}

__device__ inline bool is_fp8_kind(int kind) {
  return kind == attnjit::check::element_fp8_e4m3 || kind == attnjit::check::element_fp8_e5m2;
}

// Whether nothing was written since every byte was set to 0xff: no arithmetic gives this NaN.
__device__ inline bool is_poison(const void* base, long long index, int kind) {
  using namespace attnjit::check;
  if (is_fp8_kind(kind))
    return static_cast<const unsigned char*>(base)[index] == 0xff;
  return kind == element_fp32 ? static_cast<const unsigned*>(base)[index] == 0xffffffffu
                              : static_cast<const Element*>(base)[index] == 0xffff;
}

// Rounded to nearest even and saturated.
__device__ inline unsigned fp8_code(float value, int kind) {
  return kind == attnjit::check::element_fp8_e4m3 ? to_fp8_portable<DataType::fp8_e4m3>(value)
                                                  : to_fp8_portable<DataType::fp8_e5m2>(value);
}

__device__ inline void store_element(void* base, long long index, int kind, float value) {
  using namespace attnjit::check;
  switch (kind) {
    case element_bf16:
      static_cast<Element*>(base)[index] =
          static_cast<Element>(pack_pair<DataType::bf16>(value, 0.0f));
      break;
    case element_fp16:
      static_cast<Element*>(base)[index] =
          static_cast<Element>(pack_pair<DataType::fp16>(value, 0.0f));
      break;
    case element_fp32:
      static_cast<float*>(base)[index] = value;
      break;
    case element_fp8_e4m3:
    case element_fp8_e5m2:
      static_cast<unsigned char*>(base)[index] = static_cast<unsigned char>(fp8_code(value, kind));
      break;
    default:
      static_cast<unsigned char*>(base)[index] = static_cast<unsigned char>(value);
  }
}

// The finaliser of splitmix64: consecutive inputs give independent bits.
__device__ inline unsigned long long mix_bits(unsigned long long x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// A draw of N(0, 1) that depends on seed and index only (Box-Muller).
__device__ inline float random_normal(unsigned long long seed, unsigned long long index) {
  const unsigned long long bits = mix_bits(mix_bits(seed) ^ index);
  const float u = (static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f;
  const float v = static_cast<float>(bits & 0xffffff) * 0x1p-24f;
  return sqrtf(-2.0f * logf(u)) * cospif(2.0f * v);
}
