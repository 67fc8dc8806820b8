// One product by wgmma of operands that tensor copies wrote, everything else in shared memory NaN.
// unit_case.cuh, which the test writes, names type, n, majors and where A lies.
#include "unit_case.cuh"

#include "device/wgmma_sm90.cuh"
#include "unit_tile.cuh"

using attnjit::sm90::MultiplyArguments;

namespace {

__device__ __forceinline__ void load_tiles(const MultiplyArguments& arguments, unsigned shared,
                                           unsigned barrier) {
  const unsigned a_bytes = arguments.a.num_boxes * arguments.a.box_bytes;
  const unsigned b_bytes = arguments.b.num_boxes * arguments.b.box_bytes;
  arrive_expect_bytes(barrier, a_bytes + b_bytes);
  load_operand(shared, arguments.a_map, arguments.a, barrier);
  load_operand(shared, arguments.b_map, arguments.b, barrier);
}

__device__ __forceinline__ void multiply(const MultiplyArguments& arguments, unsigned shared,
                                         float (&d)[unit_case::n / 2]) {
  unsigned a[4];
#pragma unroll 1
  for (int step = 0; step < arguments.k_steps; ++step) {
    if constexpr (unit_case::a_in_registers) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = arguments.a_registers[(step * 4 + i) * 128 + threadIdx.x];
      hold(a);
    }
    hold(d);
    wgmma_fence();
    const unsigned long long b = describe(shared, arguments.b, step);
    if constexpr (unit_case::a_in_registers) {
      wgmma_a_in_registers<unit_case::type, unit_case::n, unit_case::b_major>(d, a, b, step != 0);
    } else {
      wgmma<unit_case::type, unit_case::n, unit_case::a_major, unit_case::b_major>(
          d, describe(shared, arguments.a, step), b, step != 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    hold(d);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
    multiply_tiles(const __grid_constant__ MultiplyArguments arguments) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  __shared__ unsigned long long barrier_state;
  const unsigned shared = shared_address(shared_bytes);
  const unsigned barrier = shared_address(&barrier_state);
  poison(shared_bytes, arguments.shared_bytes);
  if (threadIdx.x == 0) {
    prefetch_tensor_map(arguments.b_map);
    init_barrier(barrier, 1);
    fence_barrier_init();
  }
  __syncthreads();  // the barrier is initialised, all of shared memory is poisoned
  if (threadIdx.x == 0)
    load_tiles(arguments, shared, barrier);
  wait(barrier, 0);

  float d[unit_case::n / 2];
#pragma unroll
  for (int i = 0; i < unit_case::n / 2; ++i)
    d[i] = __int_as_float(0x7fffffff);  // the first k-step must overwrite it
  multiply(arguments, shared, d);
#pragma unroll
  for (int i = 0; i < unit_case::n / 2; ++i) {
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
    const int column = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
    arguments.d[row * unit_case::n + column] = d[i];
  }
}
