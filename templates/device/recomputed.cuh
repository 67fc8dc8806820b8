// Values that the compiler must compute again where they are used.
#pragma once

// Keeps the compiler from computing what follows from `value` once and for all before a loop, which
// would take a register for each result over all of it.
template <typename Word>
__device__ __forceinline__ Word recomputed(Word value) {
  static_assert(sizeof(Word) == 4, "one register");
  asm volatile("" : "+r"(value));
  return value;
}
