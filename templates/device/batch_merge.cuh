// Merging pieces in whatever order keeps most loads under way, which follows from the batch.
#pragma once

#include "device/combine_pieces.cuh"
#include "device/partial_values.cuh"

// How many pieces of a warp's lines are under way together: 32 registers of values.
template <int lines_at_once>
constexpr int pieces_at_once = 16 / lines_at_once;

constexpr int pieces_in_group = 4;  // that are skipped together where there are none

// The weights of pieces under way. A piece is weighed by one of the lanes that have the same rows.
template <int lines_at_once>
constexpr int weights_per_lane =
    (pieces_at_once<lines_at_once> + lanes_of_row<order> - 1) / lanes_of_row<order>;
template <int lines_at_once>
using PieceWeights = float[weights_per_lane<lines_at_once>][num_rows];
template <int lines_at_once>
using PieceValues = uint2[pieces_at_once<lines_at_once>][lines_at_once];

template <typename Operation>
__device__ __forceinline__ float over_lanes_of_row(float value, Operation operation) {
#pragma unroll
  for (int mask = rank_step<order>; mask < rank_step<order> * lanes_of_row<order>; mask *= 2)
    value = operation(value, __shfl_xor_sync(0xffffffffu, value, mask));
  return value;
}

__device__ __forceinline__ void add(float4& sum, const float (&weight)[num_rows],
                                    const float4& values) {
  sum.x += weight[row_of_value<order>(0)] * values.x;
  sum.y += weight[row_of_value<order>(1)] * values.y;
  sum.z += weight[row_of_value<order>(2)] * values.z;
  sum.w += weight[row_of_value<order>(3)] * values.w;
}

// Moves a lane's rows to maxima that are at least as large.
template <int lines_at_once>
__device__ __forceinline__ void raise_maxima(Merged<lines_at_once>& merged,
                                             const float (&maximum)[num_rows]) {
  float factor[num_rows];
#pragma unroll
  for (int row = 0; row < num_rows; ++row) {
    factor[row] = weight_of(merged.maximum[row], maximum[row]);
    merged.maximum[row] = maximum[row];
    merged.sum[row] *= factor[row];
  }
#pragma unroll
  for (int i = 0; i < lines_at_once; ++i) {
    const float4 values = merged.values[i];
    merged.values[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    add(merged.values[i], factor, values);
  }
}

// `count` pieces from the share's first on.
template <int lines_at_once>
__device__ __forceinline__ void load_values(const Rows& rows, const Line& line,
                                            const LineShare& share, int count,
                                            PieceValues<lines_at_once>& values) {
#pragma unroll
  for (int i = 0; i < pieces_at_once<lines_at_once>; ++i) {
    if (i > 0 && i % pieces_in_group == 0 && i >= count)
      break;
    const int piece = share.first + (i << share.bits);
    const Element* source = line.values + piece * rows.tile_stride * (lines * line_values);
#pragma unroll
    for (int j = 0; j < lines_at_once; ++j) {
      values[i][j] =
          i < count ? *reinterpret_cast<const uint2*>(source + j * line_values) : make_uint2(0, 0);
    }
  }
}

// Moves `merged` to the maxima of all pieces so far; its sums become this lane's share of them. A
// piece that saw nothing weighs nothing.
template <int lines_at_once>
__device__ __forceinline__ void weigh_pieces(const Rows& rows, const LineShare& share, int count,
                                             int lane, Merged<lines_at_once>& merged,
                                             PieceWeights<lines_at_once>& weights) {
  constexpr int per_lane = weights_per_lane<lines_at_once>;
  PartialState states[per_lane][2];
  float maximum[num_rows];
#pragma unroll
  for (int row = 0; row < num_rows; ++row)
    maximum[row] = merged.maximum[row];
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    const int rank = i * lanes_of_row<order> + rank_in_row<order>(lane);
    const int piece = share.first + (rank << share.bits);
    states[i][0] = states[i][1] = {negative_infinity(), 0.0f};
    if (rank < count)
      load_states(rows.states + piece * rows.tile_stride * config::partial_rows, states[i]);
#pragma unroll
    for (int row = 0; row < num_rows; ++row)
      maximum[row] = fmaxf(maximum[row], states[i][row].maximum);
  }
#pragma unroll
  for (int row = 0; row < num_rows; ++row)
    maximum[row] = over_lanes_of_row(maximum[row], [](float a, float b) { return fmaxf(a, b); });
  raise_maxima(merged, maximum);
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
#pragma unroll
    for (int row = 0; row < num_rows; ++row) {
      const PartialState& state = states[i][row];
      const float weight = weight_of(state.maximum, maximum[row]);
      merged.sum[row] += weight * state.sum;
      weights[i][row] = weight * restored_factor<config::dtype>(state.sum);
    }
  }
}

template <int lines_at_once>
__device__ __forceinline__ void add_values(int count, int lane,
                                           const PieceWeights<lines_at_once>& weights,
                                           const PieceValues<lines_at_once>& values,
                                           Merged<lines_at_once>& merged) {
#pragma unroll
  for (int i = 0; i < pieces_at_once<lines_at_once>; ++i) {
    if (i > 0 && i % pieces_in_group == 0 && i >= count)
      break;
    float weight[num_rows];
#pragma unroll
    for (int row = 0; row < num_rows; ++row) {
      weight[row] = __shfl_sync(0xffffffffu, weights[i / lanes_of_row<order>][row],
                                lane_of_rank<order>(lane, i % lanes_of_row<order>));
    }
#pragma unroll
    for (int j = 0; j < lines_at_once; ++j)
      add(merged.values[j], weight, unpack_values<config::dtype>(values[i][j]));
  }
}

// The pieces of one of the line's warps.
template <int lines_at_once>
__device__ __forceinline__ void merge_pieces(const Rows& rows, const Line& line, LineShare share,
                                             int lane, Merged<lines_at_once>& merged) {
  constexpr int most = pieces_at_once<lines_at_once>;
#pragma unroll 1
  for (; share.first < rows.num_pieces; share.first += most << share.bits) {
    const int left = (rows.num_pieces - share.first + (1 << share.bits) - 1) >> share.bits;
    const int count = min(left, most);
    PieceValues<lines_at_once> values;
    PieceWeights<lines_at_once> weights;
    load_values<lines_at_once>(rows, line, share, count, values);
    weigh_pieces<lines_at_once>(rows, share, count, lane, merged, weights);
    add_values<lines_at_once>(count, lane, weights, values, merged);
  }
#pragma unroll
  for (int row = 0; row < num_rows; ++row)
    merged.sum[row] = over_lanes_of_row(merged.sum[row], [](float a, float b) { return a + b; });
}

// The results of a line's warps, in its first. All threads of the block.
__device__ __forceinline__ void merge_warps(const LineShare& share, int warp, int lane,
                                            WarpResults& results, Merged<1>& merged) {
  __syncthreads();  // the results of the lines before are no longer read
  results.values[warp][lane] = merged.values[0];
  results.states[warp][lane] =
      make_float4(merged.maximum[0], merged.maximum[1], merged.sum[0], merged.sum[1]);
  __syncthreads();  // all results are written
  if (share.first > 0)
    return;
  const int warps_of_line = 1 << share.bits;
  float maximum[num_rows];
#pragma unroll
  for (int row = 0; row < num_rows; ++row)
    maximum[row] = merged.maximum[row];
#pragma unroll 4
  for (int i = 1; i < warps_of_line; ++i) {
    const float2 other = *reinterpret_cast<const float2*>(&results.states[warp + i][lane]);
    maximum[0] = fmaxf(maximum[0], other.x);
    if constexpr (num_rows == 2)
      maximum[1] = fmaxf(maximum[1], other.y);
  }
  raise_maxima(merged, maximum);
#pragma unroll 2
  for (int i = 1; i < warps_of_line; ++i) {
    const float4 other = results.states[warp + i][lane];
    const float others[2] = {other.x, other.y};
    const float sums[2] = {other.z, other.w};
    float weight[num_rows];
#pragma unroll
    for (int row = 0; row < num_rows; ++row) {
      weight[row] = weight_of(others[row], maximum[row]);
      merged.sum[row] += sums[row] * weight[row];
    }
    add(merged.values[0], weight, results.values[warp + i][lane]);
  }
}
