// How kernels/combine_splits.cu follows the attention kernel: where the GPU can, it is launched
// while that still runs, and waits here for its results.
#pragma once

#include "kernel_config.cuh"

#include "device/launch_sm90.cuh"

__device__ __forceinline__ void wait_for_attention() {
  if constexpr (config::overlaps_attention)
    wait_for_earlier_grids();
}
