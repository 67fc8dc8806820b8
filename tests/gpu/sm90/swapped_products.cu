// Both products of a decode step with tokens on M, from one tile of 64 tokens x 576 columns:
// S^T = K Q^T, P = S in 16 bits, O^T = V^T P^T. One warpgroup.
#include "unit_case.cuh"

#include "device/numeric_types.cuh"
#include "device/store_matrices_sm90.cuh"
#include "device/wgmma_sm90.cuh"
#include "unit_tile.cuh"

using attnjit::sm90::SwappedArguments;

namespace {

constexpr int heads = unit_case::n;
constexpr int tokens = 64;
constexpr int boxes = 9;         // of 64 columns
constexpr int value_slices = 8;  // of 64 columns
constexpr unsigned k_box_bytes = tokens * 128;
constexpr unsigned q_box_bytes = heads * 128;
constexpr unsigned q_offset = boxes * k_box_bytes;
// Whole swizzle atoms: rows are addressed by hand.
constexpr unsigned p_offset = (q_offset + boxes * q_box_bytes + 1023) / 1024 * 1024;
constexpr unsigned used_bytes = p_offset + heads * 128;

__device__ __forceinline__ void load_tiles(const SwappedArguments& arguments, unsigned shared,
                                           unsigned barrier) {
  arrive_expect_bytes(barrier, boxes * (k_box_bytes + q_box_bytes));
  load_tensor(shared, arguments.k_map, barrier, 0, 0, 0);
  for (int i = 0; i < boxes; ++i)
    load_tensor(shared + q_offset + i * q_box_bytes, arguments.q_map, barrier, i * 64, 0);
}

__device__ __forceinline__ void compute_scores(unsigned shared, float (&s)[heads / 2]) {
  const auto k = make_matrix_descriptor(shared, 0, 1024, Swizzle::b128);
  const auto q = make_matrix_descriptor(shared + q_offset, 0, 1024, Swizzle::b128);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < boxes * 4; ++step)
    wgmma<unit_case::type, heads, Major::k, Major::k>(
        s, advance_matrix_descriptor(k, step / 4 * k_box_bytes + step % 4 * 32),
        advance_matrix_descriptor(q, step / 4 * q_box_bytes + step % 4 * 32), step != 0);
  wgmma_commit();
  wgmma_wait<0>();
  hold(s);
}

// P [heads, 64 tokens] as a tensor copy would write it: chunk c of row h at c ^ h % 8.
__device__ __forceinline__ unsigned probability_address(unsigned shared, int head, int chunk) {
  return shared + p_offset + head * 128 + (chunk ^ head % 8) * 16;
}

template <int num_heads>
__device__ __forceinline__ void store_probabilities(unsigned shared,
                                                    const float (&s)[num_heads / 2]) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int chunk = warp * 2 + lane / 8 % 2;
  unsigned p[num_heads / 4];
#pragma unroll
  for (int i = 0; i < num_heads / 4; ++i)
    p[i] = pack_pair<unit_case::type>(s[2 * i], s[2 * i + 1]);
  if constexpr (num_heads == 8) {
    store_matrices_transposed(probability_address(shared, lane % 8, chunk), p);
  } else {
#pragma unroll
    for (int i = 0; i < num_heads / 16; ++i) {
      const unsigned four[4] = {p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3]};
      store_matrices_transposed(
          probability_address(shared, i * 16 + lane / 16 * 8 + lane % 8, chunk), four);
    }
  }
  fence_proxy_async();
  __syncthreads();  // all probabilities are written before wgmma reads them
}

__device__ __forceinline__ void accumulate_output(unsigned shared,
                                                  float (&out)[value_slices][heads / 2]) {
  const auto v = make_matrix_descriptor(shared, 0, 1024, Swizzle::b128);
  const auto p = make_matrix_descriptor(shared + p_offset, 0, 1024, Swizzle::b128);
  wgmma_fence();
#pragma unroll
  for (int slice = 0; slice < value_slices; ++slice) {
#pragma unroll
    for (int step = 0; step < tokens / 16; ++step)
      wgmma<unit_case::type, heads, Major::mn, Major::k>(
          out[slice], advance_matrix_descriptor(v, slice * k_box_bytes + step * 2048),
          advance_matrix_descriptor(p, step * 32), step != 0);
  }
  wgmma_commit();
  wgmma_wait<0>();
#pragma unroll
  for (int slice = 0; slice < value_slices; ++slice)
    hold(out[slice]);
}

__device__ __forceinline__ void store_tile(float* rows, const float (&d)[heads / 2]) {
#pragma unroll
  for (int i = 0; i < heads / 2; ++i) {
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
    rows[row * heads + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = d[i];
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128, 1)
    swapped_products(const __grid_constant__ SwappedArguments arguments) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  __shared__ unsigned long long barrier_state;
  const unsigned shared = shared_address(shared_bytes);
  const unsigned barrier = shared_address(&barrier_state);
  poison(shared_bytes, used_bytes);
  if (threadIdx.x == 0) {
    init_barrier(barrier, 1);
    fence_barrier_init();
  }
  __syncthreads();  // the barrier is initialised, all of shared memory is poisoned
  if (threadIdx.x == 0)
    load_tiles(arguments, shared, barrier);
  wait(barrier, 0);

  float s[heads / 2];
  compute_scores(shared, s);
  store_tile(arguments.s, s);
  store_probabilities<heads>(shared, s);
  float out[value_slices][heads / 2];
  accumulate_output(shared, out);
#pragma unroll
  for (int slice = 0; slice < value_slices; ++slice)
    store_tile(arguments.out + slice * 64 * heads, out[slice]);
}
