// Every wrapper of templates/device for sm_90, in one kernel that is only compiled: two warpgroups,
// the first of which copies, the second of which multiplies.
#include "device/barrier_sm90.cuh"
#include "device/launch_sm90.cuh"
#include "device/matrix_descriptor_sm90.cuh"
#include "device/registers_sm90.cuh"
#include "device/shared_address.cuh"
#include "device/store_matrices_sm90.cuh"
#include "device/tensor_copy_sm90.cuh"
#include "device/wgmma_sm90.cuh"

namespace {

constexpr unsigned tile_bytes = 65536;

struct Arguments {
  TensorMap map;
  const void* bytes;
  float* out;
  int chosen;  // product
};

__device__ __forceinline__ void copy(const Arguments& arguments, unsigned shared,
                                     unsigned barrier) {
  prefetch_tensor_map(arguments.map);
  arrive_expect_bytes(barrier, tile_bytes);
  load_tensor(shared, arguments.map, barrier, 0, 1);
  load_tensor(shared, arguments.map, barrier, 0, 1, 2);
  load_tensor(shared, arguments.map, barrier, 0, 1, 2, 3);
  load_tensor(shared, arguments.map, barrier, make_cache_policy(false), 0, 1, 2, 3, 4);
  load_bytes(shared, arguments.bytes, 1024, barrier);
  prefetch_bytes(arguments.bytes, 1024);
  arrive_after_copies(barrier);
}

template <int count>
__device__ __forceinline__ void finish(float (&d)[count], float* out) {
  wgmma_commit();
  wgmma_wait<0>();
  hold(d);
#pragma unroll
  for (int i = 0; i < count; ++i)
    out[i * 128 + threadIdx.x % 128] = d[i];
}

template <DataType type, int n, Major a_major, Major b_major>
__device__ __forceinline__ void multiply(unsigned shared, float* out) {
  const unsigned long long a = make_matrix_descriptor(shared, 0, 1024, Swizzle::b128);
  const unsigned long long b = advance_matrix_descriptor(a, tile_bytes);
  float d[n / 2];
  wgmma_fence();
  wgmma<type, n, a_major, b_major>(d, a, b, false);
  wgmma<type, n, a_major, b_major>(d, advance_matrix_descriptor(a, 32),
                                   advance_matrix_descriptor(b, 32), true);
  finish(d, out);
}

template <DataType type, int n, Major b_major>
__device__ __forceinline__ void multiply_registers(unsigned shared, float* out) {
  const unsigned long long b =
      make_matrix_descriptor(shared, swizzle_bytes(Swizzle::b64), 512, Swizzle::b64);
  unsigned a[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    a[i] = __float_as_uint(out[i * 128 + threadIdx.x % 128]);
  hold(a);
  float d[n / 2];
  wgmma_fence();
  wgmma_a_in_registers<type, n, b_major>(d, a, b, false);
  finish(d, out);
}

// Each product in a branch of its own: in a row, the assembler overlaps their accumulators.
template <int... n>
__device__ __forceinline__ void multiply_every_shape(int chosen, unsigned shared, float* out) {
  ((chosen == n ? multiply<DataType::bf16, n, Major::k, Major::k>(shared, out) : void()), ...);
  ((chosen == -n ? multiply_registers<DataType::bf16, n, Major::k>(shared, out) : void()), ...);
}

template <DataType type>
__device__ __forceinline__ void multiply_every_major(int chosen, unsigned shared, float* out) {
  switch (chosen) {
    case 0:
      return multiply<type, 64, Major::k, Major::mn>(shared, out);
    case 1:
      return multiply<type, 64, Major::mn, Major::k>(shared, out);
    case 2:
      return multiply<type, 64, Major::mn, Major::mn>(shared, out);
    default:
      return multiply_registers<type, 64, Major::mn>(shared, out);
  }
}

__device__ __forceinline__ void multiply_bytes(int chosen, unsigned shared, float* out) {
  if (chosen == 0) {
    multiply<DataType::fp8_e4m3, 64, Major::k, Major::k>(shared, out);
  } else {
    multiply_registers<DataType::fp8_e4m3, 64, Major::k>(shared, out);
  }
}

__device__ __forceinline__ void store(unsigned row, const float* values) {
  unsigned four[4];
  unsigned two[2];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    four[i] = __float_as_uint(values[i]);
#pragma unroll
  for (int i = 0; i < 2; ++i)
    two[i] = __float_as_uint(values[4 + i]);
  store_matrices(row, four);
  store_matrices_transposed(row, four);
  store_matrices(row, two);
  store_matrices_transposed(row, two);
  fence_proxy_async();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256, 1)
    instructions_sm90(const __grid_constant__ Arguments arguments) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  __shared__ unsigned long long barrier_states[2];
  const unsigned shared = shared_address(shared_bytes);
  const unsigned full = shared_address(&barrier_states[0]);
  const unsigned empty = shared_address(&barrier_states[1]);
  if (threadIdx.x == 0) {
    init_barrier(full, 1);
    init_barrier(empty, 128);
    fence_barrier_init();
  }
  __syncthreads();  // the barriers are initialised
  arrive_cluster();
  wait_cluster();
  launch_dependent_grids();
  wait_for_earlier_grids();
  if (threadIdx.x < 128) {
    decrease_registers<24>();
    if (threadIdx.x == 0) {
      wait(empty, 1);
      copy(arguments, shared, full);
    }
    arrive_named_barrier<256>(1);
  } else {
    increase_registers<240>();
    wait(full, 0);
    float* out = arguments.out + cluster_rank();
    multiply_every_shape<8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 176, 192, 256>(
        arguments.chosen, shared, out);
    multiply_every_major<DataType::bf16>(arguments.chosen, shared, out);
    multiply_every_major<DataType::fp16>(arguments.chosen, shared, out);
    multiply_bytes(arguments.chosen, shared, out);
    store(shared + threadIdx.x * 16, out);
    arrive(empty);
    sync_named_barrier<256>(1);
  }
}
