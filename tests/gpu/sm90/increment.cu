// Adds one to values that the launch before it may still be adding to, unless it waits.
#include "device/launch_sm90.cuh"
#include "unit_arguments.h"

using attnjit::sm90::IncrementArguments;

extern "C" __global__ void __launch_bounds__(128, 1)
    increment(const __grid_constant__ IncrementArguments arguments) {
  launch_dependent_grids();
  wait_for_earlier_grids();
  // Not the block that added to these values before: a missing wait loses additions.
  const unsigned block = (blockIdx.x + arguments.shift) % gridDim.x;
  int* value = arguments.values + block * blockDim.x + threadIdx.x;
  const int before = *value;
  __nanosleep(2000);
  *value = before + 1;
}
