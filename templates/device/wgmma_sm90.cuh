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

// Pieces of the instruction's text. PTX ISA 9.7.15.5.2, wgmma.mma_async.
template <DataType type>
struct WgmmaType;
template <>
struct WgmmaType<DataType::bf16> {
  static constexpr char text[] = "k16.f32.bf16.bf16";
};
template <>
struct WgmmaType<DataType::fp16> {
  static constexpr char text[] = "k16.f32.f16.f16";
};
template <>
struct WgmmaType<DataType::fp8_e4m3> {
  static constexpr char text[] = "k32.f32.e4m3.e4m3";
};

// Signs of A and B, then for each operand in shared memory whether it is MN-major. 8-bit types have
// no such choice.
template <bool is_8_bit, Major... majors>
struct WgmmaMajors {
  static_assert(!is_8_bit || ((majors == Major::k) && ...), "8-bit operands are K-major");
  static constexpr char text[] = "1, 1";
};
template <Major major>
struct WgmmaMajors<false, major> {
  static constexpr char text[] = {'1', ',', '1', ',', major == Major::k ? '0' : '1', 0};
};
template <Major a_major, Major b_major>
struct WgmmaMajors<false, a_major, b_major> {
  static constexpr char text[] = {
      '1', ',', '1', ',', a_major == Major::k ? '0' : '1', ',', b_major == Major::k ? '0' : '1', 0};
};

template <int n>
constexpr bool wgmma_has_shape = n == 80 || n == 96 || n == 128 || n == 176 || n == 192 ||
                                 n == 256 || (n > 0 && n <= 64 && n % 8 == 0);

// Operands are numbered after the n / 2 accumulators, in the order of the parameters.
#define ATTNJIT_WGMMA(size, a, b, accumulated, type_text, majors_text)                         \
  if constexpr (n == size)                                                                     \
  asm volatile("{ .reg .pred accumulate; setp.ne.b32 accumulate, %" #accumulated               \
               ", 0; wgmma.mma_async.sync.aligned.m64n" #size "%" #type_text                   \
               " {" ATTNJIT_REGISTERS_##size "}, %" #a ", %" #b ", accumulate, %" #majors_text \
                                             "; }"                                             \
               : ATTNJIT_OUTPUTS_##size                                                        \
               : "l"(a_descriptor), "l"(b_descriptor), "r"(static_cast<int>(accumulate)),      \
                 "C"(WgmmaType<type>::text), "C"(Majors::text)                                 \
               : "memory")

// `accumulate` false overwrites d.
template <DataType type, int n, Major a_major, Major b_major>
__device__ __forceinline__ void wgmma(float (&d)[n / 2], unsigned long long a_descriptor,
                                      unsigned long long b_descriptor, bool accumulate) {
  static_assert(wgmma_has_shape<n>, "n is a multiple of 8 up to 64, or 80, 96, 128, 176, 192, 256");
  using Majors = WgmmaMajors<type == DataType::fp8_e4m3, a_major, b_major>;
  ATTNJIT_WGMMA(8, 4, 5, 6, 7, 8);
  ATTNJIT_WGMMA(16, 8, 9, 10, 11, 12);
  ATTNJIT_WGMMA(24, 12, 13, 14, 15, 16);
  ATTNJIT_WGMMA(32, 16, 17, 18, 19, 20);
  ATTNJIT_WGMMA(40, 20, 21, 22, 23, 24);
  ATTNJIT_WGMMA(48, 24, 25, 26, 27, 28);
  ATTNJIT_WGMMA(56, 28, 29, 30, 31, 32);
  ATTNJIT_WGMMA(64, 32, 33, 34, 35, 36);
  ATTNJIT_WGMMA(80, 40, 41, 42, 43, 44);
  ATTNJIT_WGMMA(96, 48, 49, 50, 51, 52);
  ATTNJIT_WGMMA(128, 64, 65, 66, 67, 68);
  ATTNJIT_WGMMA(176, 88, 89, 90, 91, 92);
  ATTNJIT_WGMMA(192, 96, 97, 98, 99, 100);
  ATTNJIT_WGMMA(256, 128, 129, 130, 131, 132);
}

#undef ATTNJIT_WGMMA
#define ATTNJIT_WGMMA(size, a0, a1, a2, a3, b, accumulated, type_text, majors_text)               \
  if constexpr (n == size)                                                                        \
  asm volatile("{ .reg .pred accumulate; setp.ne.b32 accumulate, %" #accumulated                  \
               ", 0; wgmma.mma_async.sync.aligned.m64n" #size "%" #type_text                      \
               " {" ATTNJIT_REGISTERS_##size "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b  \
                                             ", accumulate, %" #majors_text "; }"                 \
               : ATTNJIT_OUTPUTS_##size                                                           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b_descriptor),                   \
                 "r"(static_cast<int>(accumulate)), "C"(WgmmaType<type>::text), "C"(Majors::text) \
               : "memory")

// The same with A in registers. 16-bit types: a[0] holds row lane / 4 of the warp's 16 rows,
// k-index 2 * (lane % 4) and the next; a[1] the row 8 below; a[2] and a[3] the same rows, k + 8;
// which is how d of a 64 x 16 product lies when its pairs are packed. 8-bit types: four k-indices
// from 4 * (lane % 4), and k + 16.
template <DataType type, int n, Major b_major>
__device__ __forceinline__ void wgmma_a_in_registers(float (&d)[n / 2], const unsigned (&a)[4],
                                                     unsigned long long b_descriptor,
                                                     bool accumulate) {
  static_assert(wgmma_has_shape<n>, "n is a multiple of 8 up to 64, or 80, 96, 128, 176, 192, 256");
  using Majors = WgmmaMajors<type == DataType::fp8_e4m3, b_major>;
  ATTNJIT_WGMMA(8, 4, 5, 6, 7, 8, 9, 10, 11);
  ATTNJIT_WGMMA(16, 8, 9, 10, 11, 12, 13, 14, 15);
  ATTNJIT_WGMMA(24, 12, 13, 14, 15, 16, 17, 18, 19);
  ATTNJIT_WGMMA(32, 16, 17, 18, 19, 20, 21, 22, 23);
  ATTNJIT_WGMMA(40, 20, 21, 22, 23, 24, 25, 26, 27);
  ATTNJIT_WGMMA(48, 24, 25, 26, 27, 28, 29, 30, 31);
  ATTNJIT_WGMMA(56, 28, 29, 30, 31, 32, 33, 34, 35);
  ATTNJIT_WGMMA(64, 32, 33, 34, 35, 36, 37, 38, 39);
  ATTNJIT_WGMMA(80, 40, 41, 42, 43, 44, 45, 46, 47);
  ATTNJIT_WGMMA(96, 48, 49, 50, 51, 52, 53, 54, 55);
  ATTNJIT_WGMMA(128, 64, 65, 66, 67, 68, 69, 70, 71);
  ATTNJIT_WGMMA(176, 88, 89, 90, 91, 92, 93, 94, 95);
  ATTNJIT_WGMMA(192, 96, 97, 98, 99, 100, 101, 102, 103);
  ATTNJIT_WGMMA(256, 128, 129, 130, 131, 132, 133, 134, 135);
}

#undef ATTNJIT_WGMMA
