// A value that is the same in all lanes of a warp, in a form the compiler can see: descriptors and
// addresses that follow from it then live in uniform registers, from which wgmma takes them.
#pragma once

__device__ __forceinline__ int warp_uniform(int value) {
  return __shfl_sync(0xffffffffu, value, 0);
}
