// The warpgroup's matrix instruction: d[64 x n] (+)= a[64 x k] * b[k x n], fp32 sums, one k-step of
// 32 bytes (16 elements of 16 bits, 32 of 8 bits). All four warps of an aligned warpgroup issue it
// together. B and, in wgmma, A lie in shared memory (device/matrix_descriptor_sm90.cuh).
//
// Order: writes of d and of a in registers; hold; wgmma_fence; wgmmas; wgmma_commit; wgmma_wait;
// hold; reads of d, reuse of a and of the shared memory.
//
// Thread t of the warpgroup holds d[i] of row 16 * (t / 32) + t % 32 / 4 + 8 * (i / 2 % 2), column
// 8 * (i / 4) + 2 * (t % 4) + i % 2. PTX ISA 9.7.15.5.1.1, "Register Fragments".
#pragma once

#include "device/config_types.cuh"
#include "device/wgmma_operands_sm90.cuh"

// Which index is contiguous in shared memory: k, or the row of A and the column of B (mn).
enum class Major { k, mn };

// Makes registers written before it visible to later wgmmas. PTX ISA 9.7.15.7.1, wgmma.fence.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// PTX ISA 9.7.15.7.2, wgmma.commit_group.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Returns when at most `pending` committed groups are unfinished. PTX ISA 9.7.15.7.3,
// wgmma.wait_group.
template <int pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Keeps the compiler from moving accesses of these registers across: it does not know that a wgmma
// in flight still uses them.
template <int count>
__device__ __forceinline__ void hold(float (&registers)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i)
    asm volatile("" : "+f"(registers[i])::"memory");
}

template <int count>
__device__ __forceinline__ void hold(unsigned (&registers)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i)
    asm volatile("" : "+r"(registers[i])::"memory");
}

__device__ constexpr bool wgmma_has_shape(int n) {
  return n == 80 || n == 96 || n == 128 || n == 176 || n == 192 || n == 256 ||
         (n > 0 && n <= 64 && n % 8 == 0);
}

// PTX ISA 9.7.15.5.2, wgmma.mma_async. Its operands are numbered after the n / 2 accumulators. Of
// the immediates, 1, 1 are the signs of A and B; 16-bit types also say whether each operand in
// shared memory is transposed, which is MN-major.
#define ATTNJIT_TEXT(size, types, a, b, accumulated)                                 \
  "{ .reg .pred accumulate; setp.ne.b32 accumulate, %" #accumulated                  \
  ", 0; wgmma.mma_async.sync.aligned.m64n" #size types " {" ATTNJIT_REGISTERS_##size \
      "}, " a ", %" #b ", accumulate, 1, 1"
#define ATTNJIT_WGMMA(size, types, majors, a, b, accumulated, a_mn, b_mn)                 \
  if constexpr (n == size)                                                                \
  asm volatile(ATTNJIT_TEXT(size, types, "%" #a, b, accumulated) majors(a_mn, b_mn) "; }" \
               : ATTNJIT_OUTPUTS_##size                                                   \
               : "l"(a_descriptor), "l"(b_descriptor), "r"(static_cast<int>(accumulate)), \
                 "n"(a_major == Major::mn), "n"(b_major == Major::mn)                     \
               : "memory")
#define ATTNJIT_WGMMA_SHAPES(types, majors)               \
  ATTNJIT_WGMMA(8, types, majors, 4, 5, 6, 7, 8);         \
  ATTNJIT_WGMMA(16, types, majors, 8, 9, 10, 11, 12);     \
  ATTNJIT_WGMMA(24, types, majors, 12, 13, 14, 15, 16);   \
  ATTNJIT_WGMMA(32, types, majors, 16, 17, 18, 19, 20);   \
  ATTNJIT_WGMMA(40, types, majors, 20, 21, 22, 23, 24);   \
  ATTNJIT_WGMMA(48, types, majors, 24, 25, 26, 27, 28);   \
  ATTNJIT_WGMMA(56, types, majors, 28, 29, 30, 31, 32);   \
  ATTNJIT_WGMMA(64, types, majors, 32, 33, 34, 35, 36);   \
  ATTNJIT_WGMMA(80, types, majors, 40, 41, 42, 43, 44);   \
  ATTNJIT_WGMMA(96, types, majors, 48, 49, 50, 51, 52);   \
  ATTNJIT_WGMMA(128, types, majors, 64, 65, 66, 67, 68);  \
  ATTNJIT_WGMMA(176, types, majors, 88, 89, 90, 91, 92);  \
  ATTNJIT_WGMMA(192, types, majors, 96, 97, 98, 99, 100); \
  ATTNJIT_WGMMA(256, types, majors, 128, 129, 130, 131, 132)
#define ATTNJIT_MAJORS(a_mn, b_mn) ", %" #a_mn ", %" #b_mn
#define ATTNJIT_NO_MAJORS(a_mn, b_mn)

// `accumulate` false overwrites d.
template <DataType type, int n, Major a_major, Major b_major>
__device__ __forceinline__ void wgmma(float (&d)[n / 2], unsigned long long a_descriptor,
                                      unsigned long long b_descriptor, bool accumulate) {
  static_assert(wgmma_has_shape(n), "n is a multiple of 8 up to 64, or 80, 96, 128, 176, 192, 256");
  if constexpr (type == DataType::bf16) {
    ATTNJIT_WGMMA_SHAPES("k16.f32.bf16.bf16", ATTNJIT_MAJORS);
  } else if constexpr (type == DataType::fp16) {
    ATTNJIT_WGMMA_SHAPES("k16.f32.f16.f16", ATTNJIT_MAJORS);
  } else {
    static_assert(type == DataType::fp8_e4m3, "bf16, fp16 or fp8_e4m3");
    static_assert(a_major == Major::k && b_major == Major::k, "8-bit operands are K-major");
    ATTNJIT_WGMMA_SHAPES("k32.f32.e4m3.e4m3", ATTNJIT_NO_MAJORS);
  }
}

#undef ATTNJIT_WGMMA
#undef ATTNJIT_WGMMA_SHAPES
#undef ATTNJIT_MAJORS
#undef ATTNJIT_NO_MAJORS
#define ATTNJIT_WGMMA(size, types, majors, a0, a1, a2, a3, b, accumulated, b_mn)        \
  if constexpr (n == size)                                                              \
  asm volatile(ATTNJIT_TEXT(size, types, "{%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}", b, \
                            accumulated) majors(b_mn) "; }"                             \
               : ATTNJIT_OUTPUTS_##size                                                 \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b_descriptor),         \
                 "r"(static_cast<int>(accumulate)), "n"(b_major == Major::mn)           \
               : "memory")
#define ATTNJIT_WGMMA_SHAPES(types, majors)                         \
  ATTNJIT_WGMMA(8, types, majors, 4, 5, 6, 7, 8, 9, 10);            \
  ATTNJIT_WGMMA(16, types, majors, 8, 9, 10, 11, 12, 13, 14);       \
  ATTNJIT_WGMMA(24, types, majors, 12, 13, 14, 15, 16, 17, 18);     \
  ATTNJIT_WGMMA(32, types, majors, 16, 17, 18, 19, 20, 21, 22);     \
  ATTNJIT_WGMMA(40, types, majors, 20, 21, 22, 23, 24, 25, 26);     \
  ATTNJIT_WGMMA(48, types, majors, 24, 25, 26, 27, 28, 29, 30);     \
  ATTNJIT_WGMMA(56, types, majors, 28, 29, 30, 31, 32, 33, 34);     \
  ATTNJIT_WGMMA(64, types, majors, 32, 33, 34, 35, 36, 37, 38);     \
  ATTNJIT_WGMMA(80, types, majors, 40, 41, 42, 43, 44, 45, 46);     \
  ATTNJIT_WGMMA(96, types, majors, 48, 49, 50, 51, 52, 53, 54);     \
  ATTNJIT_WGMMA(128, types, majors, 64, 65, 66, 67, 68, 69, 70);    \
  ATTNJIT_WGMMA(176, types, majors, 88, 89, 90, 91, 92, 93, 94);    \
  ATTNJIT_WGMMA(192, types, majors, 96, 97, 98, 99, 100, 101, 102); \
  ATTNJIT_WGMMA(256, types, majors, 128, 129, 130, 131, 132, 133, 134)
#define ATTNJIT_MAJORS(b_mn) ", %" #b_mn
#define ATTNJIT_NO_MAJORS(b_mn)

// The same with A in registers. 16-bit types: a[0] holds row lane / 4 of the warp's 16 rows,
// k-index 2 * (lane % 4) and the next; a[1] the row 8 below; a[2] and a[3] the same rows, k + 8;
// which is how d of a 64 x 16 product lies when its pairs are packed. 8-bit types: four k-indices
// from 4 * (lane % 4), and k + 16.
template <DataType type, int n, Major b_major>
__device__ __forceinline__ void wgmma_a_in_registers(float (&d)[n / 2], const unsigned (&a)[4],
                                                     unsigned long long b_descriptor,
                                                     bool accumulate) {
  static_assert(wgmma_has_shape(n), "n is a multiple of 8 up to 64, or 80, 96, 128, 176, 192, 256");
  if constexpr (type == DataType::bf16) {
    ATTNJIT_WGMMA_SHAPES("k16.f32.bf16.bf16", ATTNJIT_MAJORS);
  } else if constexpr (type == DataType::fp16) {
    ATTNJIT_WGMMA_SHAPES("k16.f32.f16.f16", ATTNJIT_MAJORS);
  } else {
    static_assert(type == DataType::fp8_e4m3, "bf16, fp16 or fp8_e4m3");
    static_assert(b_major == Major::k, "8-bit operands are K-major");
    ATTNJIT_WGMMA_SHAPES("k32.f32.e4m3.e4m3", ATTNJIT_NO_MAJORS);
  }
}

#undef ATTNJIT_TEXT
#undef ATTNJIT_WGMMA
#undef ATTNJIT_WGMMA_SHAPES
#undef ATTNJIT_MAJORS
#undef ATTNJIT_NO_MAJORS
