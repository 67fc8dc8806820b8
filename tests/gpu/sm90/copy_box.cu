// One box of a tensor, of any rank, and plain rows, copied into poisoned shared memory, which is
// then written out whole.
#include "unit_tile.cuh"

using attnjit::sm90::CopyArguments;

namespace {

__device__ __forceinline__ void load_box(const CopyArguments& arguments, unsigned destination,
                                         unsigned barrier) {
  const int* x = arguments.coordinates;
  switch (arguments.rank) {
    case 2:
      load_tensor(destination, arguments.map, barrier, x[0], x[1]);
      break;
    case 3:
      load_tensor(destination, arguments.map, barrier, x[0], x[1], x[2]);
      break;
    case 4:
      load_tensor(destination, arguments.map, barrier, x[0], x[1], x[2], x[3]);
      break;
    default:
      load_tensor(destination, arguments.map, barrier, make_cache_policy(true), x[0], x[1], x[2],
                  x[3], x[4]);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
    copy_box(const __grid_constant__ CopyArguments arguments) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  __shared__ unsigned long long barrier_state;
  const unsigned shared = shared_address(shared_bytes);
  const unsigned barrier = shared_address(&barrier_state);
  poison(shared_bytes, arguments.shared_bytes);
  if (threadIdx.x == 0) {
    init_barrier(barrier, 2);
    fence_barrier_init();
  }
  __syncthreads();  // the barrier is initialised, all of shared memory is poisoned
  if (threadIdx.x == 0) {
    arrive_expect_bytes(barrier, arguments.box_bytes);
    load_box(arguments, shared + arguments.box_offset, barrier);
  }
  if (threadIdx.x == 32) {
    arrive_expect_bytes(barrier, arguments.num_rows * arguments.row_bytes);
    for (int i = 0; i < arguments.num_rows; ++i)
      load_bytes(shared + arguments.box_offset + arguments.box_bytes + i * arguments.row_bytes,
                 arguments.rows + i * arguments.row_bytes, arguments.row_bytes, barrier);
  }
  wait(barrier, 0);
  for (unsigned i = threadIdx.x; i < arguments.shared_bytes; i += blockDim.x)
    arguments.image[i] = shared_bytes[i];
}
