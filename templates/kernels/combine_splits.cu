// Merges the partial results of split requests by their LSE. One warp per query row; rows of
// requests that were not split are left alone, the attention kernel has written them. Grid: x =
// rows.
#include "kernel_config.cuh"

#include "device/numeric_types.cuh"
#include "device/softmax_math.cuh"
#include "interface/paged_decode_arguments.h"

using namespace attnjit::kernel_interface;

namespace {

constexpr int columns_per_lane = 2;
constexpr int column_steps =
    (config::head_dim_v + 32 * columns_per_lane - 1) / (32 * columns_per_lane);

// A row of the output and where its pieces lie.
struct Row {
  long long request;
  int query;
  int head;
  int first_piece;
  int num_pieces;
  long long first_partial;   // row of the first piece in the partial results
  long long partial_stride;  // rows between pieces
};

__device__ __forceinline__ Row find_row(const CombineArguments& arguments, long long index) {
  const int num_q_heads = arguments.num_kv_heads * arguments.q_per_kv;
  Row row;
  row.head = static_cast<int>(index % num_q_heads);
  const long long token = index / num_q_heads;
  row.query = static_cast<int>(token % arguments.seqlen_q);
  row.request = token / arguments.seqlen_q;
  row.first_piece = arguments.piece_offsets[row.request];
  row.num_pieces = arguments.piece_offsets[row.request + 1] - row.first_piece;
  const int rows = arguments.seqlen_q * arguments.q_per_kv;
  row.partial_stride = static_cast<long long>(arguments.num_kv_heads) * rows;
  row.first_partial = row.first_piece * row.partial_stride +
                      static_cast<long long>(row.head / arguments.q_per_kv) * rows +
                      row.query * arguments.q_per_kv + row.head % arguments.q_per_kv;
  return row;
}

// The LSE of the whole row: log of the sum of exp(lse) over its pieces, -inf if all are.
__device__ __forceinline__ float merge_lse(const CombineArguments& arguments, const Row& row,
                                           int lane) {
  float maximum = negative_infinity();
  for (int i = lane; i < row.num_pieces; i += 32) {
    maximum = fmaxf(maximum, arguments.partial.lse[row.first_partial + i * row.partial_stride]);
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, step));
  }
  if (maximum == negative_infinity())
    return maximum;
  float sum = 0.0f;
  for (int i = lane; i < row.num_pieces; i += 32) {
    const float lse = arguments.partial.lse[row.first_partial + i * row.partial_stride];
    sum += exp2_approximate((lse - maximum) * log2_e);
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return maximum + log2_approximate(sum) * ln_2;
}

__device__ __forceinline__ void combine_row(const CombineArguments& arguments, const Row& row,
                                            float lse, int lane) {
  float out[column_steps][columns_per_lane] = {};
  for (int i = 0; i < row.num_pieces; ++i) {
    const long long partial = row.first_partial + i * row.partial_stride;
    const float piece_lse = arguments.partial.lse[partial];
    // A piece that saw nothing has written no output worth reading.
    if (piece_lse == negative_infinity())
      continue;
    const float weight = exp2_approximate((piece_lse - lse) * log2_e);
#pragma unroll
    for (int step = 0; step < column_steps; ++step) {
      const int column = (step * 32 + lane) * columns_per_lane;
      if (column < config::head_dim_v) {
        const float2 values = *reinterpret_cast<const float2*>(
            arguments.partial.out + partial * config::head_dim_v + column);
        out[step][0] += weight * values.x;
        out[step][1] += weight * values.y;
      }
    }
  }
  Element* destination =
      static_cast<Element*>(arguments.out) + row.request * arguments.out_strides.batch +
      row.query * arguments.out_strides.token + row.head * arguments.out_strides.head;
#pragma unroll
  for (int step = 0; step < column_steps; ++step) {
    const int column = (step * 32 + lane) * columns_per_lane;
    if (column < config::head_dim_v) {
      *reinterpret_cast<unsigned*>(destination + column) =
          pack_pair<config::dtype>(out[step][0], out[step][1]);
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::num_warps * 32, 1)
    combine_splits(const __grid_constant__ CombineArguments arguments) {
  const int lane = threadIdx.x % 32;
  const long long index = static_cast<long long>(blockIdx.x) * config::num_warps + threadIdx.x / 32;
  if (index >= arguments.num_rows)
    return;
  const Row row = find_row(arguments, index);
  if (row.num_pieces == 0)
    return;
  const float lse = merge_lse(arguments, row, lane);
  combine_row(arguments, row, lse, lane);
  if (lane == 0 && arguments.lse != nullptr) {
    arguments.lse[row.request * arguments.lse_strides.batch +
                  row.query * arguments.lse_strides.token + row.head * arguments.lse_strides.head] =
        lse;
  }
}
