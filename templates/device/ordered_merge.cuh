// Merging pieces in an order, and with roundings, that follow from the config and the request
// alone, for results that do not depend on the batch, to the bit.
#pragma once

#include "device/combine_pieces.cuh"

// The order in which pieces are merged decides the last bits of a result. Where these must not
// depend on the batch, segment_pieces pieces at a time are merged one by one, and the segments one
// by one, whichever warps do it.
constexpr bool has_fixed_order = config::segment_pieces > 0;
static_assert(config::segment_pieces % pieces_in_flight<1> == 0,
              "pieces under way together are of one segment");

// Adds a piece, or pieces merged before. Every operation is rounded by itself: left to the
// compiler, products and sums would be contracted here and not there.
template <int lines_at_once>
__device__ __forceinline__ void fold(Merged<lines_at_once>& merged, const float (&maximum)[2],
                                     const float (&sum)[2], const float4 (&values)[lines_at_once]) {
  float own[2];
  float other[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const float highest = fmaxf(merged.maximum[row], maximum[row]);
    own[row] = weight_of(merged.maximum[row], highest);
    other[row] = weight_of(maximum[row], highest);
    merged.maximum[row] = highest;
    merged.sum[row] =
        __fadd_rn(__fmul_rn(merged.sum[row], own[row]), __fmul_rn(sum[row], other[row]));
  }
  const auto add_weighted = [&](int row, float& total, float value) {
    total = __fadd_rn(own[row] == 0.0f ? 0.0f : __fmul_rn(own[row], total),
                      other[row] == 0.0f ? 0.0f : __fmul_rn(other[row], value));
  };
#pragma unroll
  for (int j = 0; j < lines_at_once; ++j) {
    add_weighted(row_of_value<order>(0), merged.values[j].x, values[j].x);
    add_weighted(row_of_value<order>(1), merged.values[j].y, values[j].y);
    add_weighted(row_of_value<order>(2), merged.values[j].z, values[j].z);
    add_weighted(row_of_value<order>(3), merged.values[j].w, values[j].w);
  }
}

// The segment's pieces from `first_piece` on. What is past the last piece adds nothing.
template <int lines_at_once>
__device__ __forceinline__ void merge_segment(const Line& line, int first_piece,
                                              Merged<lines_at_once>& segment) {
  constexpr int at_once = pieces_in_flight<lines_at_once>;
  reset(segment);
  const int end = min(first_piece + config::segment_pieces, line.num_pieces);
#pragma unroll 1
  for (int first = first_piece; first < end; first += at_once) {
    LoadedPieces<lines_at_once> pieces;
    load_pieces(line, first, 1, pieces);
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const float maximum[2] = {pieces.states[i][0].maximum, pieces.states[i][1].maximum};
      const float sum[2] = {pieces.states[i][0].sum, pieces.states[i][1].sum};
      float4 values[lines_at_once];
#pragma unroll
      for (int j = 0; j < lines_at_once; ++j)
        values[j] = values_of(pieces, i, j);
      fold(segment, maximum, sum, values);
    }
  }
}

// One warp, all segments of its lines.
template <int lines_at_once>
__device__ __forceinline__ void merge_in_order(const Line& line, Merged<lines_at_once>& merged) {
#pragma unroll 1
  for (int first = 0; first < line.num_pieces; first += config::segment_pieces) {
    Merged<lines_at_once> segment;
    merge_segment(line, first, segment);
    fold(merged, segment.maximum, segment.sum, segment.values);
  }
}

// The same by a line's warps, a segment each at a time; the first adds them up. All threads of the
// block.
template <int lines_at_once>
__device__ __forceinline__ void merge_by_warps(const Line& line, int warps_per_line, int group,
                                               int lane, Merged<lines_at_once>& merged) {
  static_assert(lines_at_once == 1, "only single lines are shared by warps");
  __shared__ float4 values[config::num_warps][32];
  __shared__ float4 states[config::num_warps][32];  // maxima, sums
  const int warp = threadIdx.x / 32;
  int first = 0;
  // Nobody goes on before all are done with the segments before.
  while (__syncthreads_or(first < line.num_pieces)) {
    Merged<lines_at_once> segment;
    merge_segment(line, first + group * config::segment_pieces, segment);
    values[warp][lane] = segment.values[0];
    states[warp][lane] =
        make_float4(segment.maximum[0], segment.maximum[1], segment.sum[0], segment.sum[1]);
    __syncthreads();  // all segments are written
    if (group == 0) {
#pragma unroll 1
      for (int i = 0; i < warps_per_line; ++i) {
        const float4 state = states[warp + i][lane];
        const float maximum[2] = {state.x, state.y};
        const float sum[2] = {state.z, state.w};
        const float4 value[1] = {values[warp + i][lane]};
        fold(merged, maximum, sum, value);
      }
    }
    first += warps_per_line * config::segment_pieces;
  }
}

template <int lines_at_once>
__device__ __forceinline__ void merge_ordered(const Line& line, int warps_per_line, int group,
                                              int lane, Merged<lines_at_once>& merged) {
  if constexpr (lines_at_once == 1) {
    if (warps_per_line > 1) {
      merge_by_warps(line, warps_per_line, group, lane, merged);
      return;
    }
  }
  merge_in_order(line, merged);
}
