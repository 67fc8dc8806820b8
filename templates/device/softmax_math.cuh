// Constants and scalar functions of the online softmax.
#pragma once

constexpr float log2_e = 1.4426950408889634f;
constexpr float ln_2 = 0.6931471805599453f;

__device__ __forceinline__ float negative_infinity() {
  return __int_as_float(0xff800000);
}

// What to subtract from a row's scores: 0 where nothing is visible yet, so that -inf - -inf, a NaN,
// never arises.
__device__ __forceinline__ float finite_maximum(float maximum) {
  return maximum == negative_infinity() ? 0.0f : maximum;
}

// 2^x, 0 for -inf. PTX ISA 9.7.3.23, ex2.approx.
__device__ __forceinline__ float exp2_approximate(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// 1 / x within one unit in the last place. PTX ISA 9.7.3, rcp.
__device__ __forceinline__ float reciprocal_approximate(float x) {
  float result;
  asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// PTX ISA 9.7.3.22, lg2.approx.
__device__ __forceinline__ float log2_approximate(float x) {
  float result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
