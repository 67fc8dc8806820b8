// A value of which the compiler does not know that it is what it was.
//
// Two uses. What follows from it is computed again where it is needed instead of being kept in a
// register. And of two branches in a row, the second on the opaque value, the first one's code
// comes first: as one branch with an else, the assembler puts the longer one first, and a short
// call waits for code that is far away.
#pragma once

template <typename Value>
__device__ __forceinline__ Value opaque(Value value) {
  static_assert(sizeof(Value) == 4, "one register");
  asm volatile("" : "+r"(value));
  return value;
}
