// A warpgroup that writes and hands registers to two that read; they meet at named barriers, and
// clusters of two blocks at cluster barriers.
#include "device/barrier_sm90.cuh"
#include "device/registers_sm90.cuh"
#include "unit_arguments.h"

using attnjit::sm90::SynchronizeArguments;

namespace {

constexpr int rounds = 64;

}  // namespace

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    synchronize(const __grid_constant__ SynchronizeArguments arguments) {
  __shared__ int values[128];
  __shared__ int sum;
  if (threadIdx.x == 0)
    sum = 0;
  __syncthreads();  // the sum is zero
  const int thread = threadIdx.x % 128;
  if (threadIdx.x < 128) {
    decrease_registers<24>();
    for (int round = 0; round < rounds; ++round) {
      values[thread] = thread + round;
      arrive_named_barrier<384>(1);  // values are written: the others wait
      sync_named_barrier<384>(2);    // values are read: the others arrive
    }
  } else {
    increase_registers<240>();
    int partial = 0;
    for (int round = 0; round < rounds; ++round) {
      sync_named_barrier<384>(1);
      partial += values[127 - thread];
      arrive_named_barrier<384>(2);
    }
    atomicAdd(&sum, partial);
  }
  arrive_cluster();
  wait_cluster();
  if (threadIdx.x == 0) {
    arguments.sums[blockIdx.x] = sum;
    arguments.ranks[blockIdx.x] = cluster_rank();
  }
}
