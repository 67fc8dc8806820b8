// Registers handed from one warpgroup to another. Every warp of the warpgroup runs the instruction,
// in a kernel whose launch bounds fix its registers; counts are multiples of 8 from 24 to 256.
// PTX ISA 9.7.19.5, setmaxnreg.
#pragma once

// Waits until the block's pool holds what is missing; the new registers hold nothing yet.
template <int registers>
__device__ __forceinline__ void increase_registers() {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0, "see above");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers>
__device__ __forceinline__ void decrease_registers() {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0, "see above");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
