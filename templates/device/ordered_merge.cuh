// Merging pieces in an order, and with roundings, that follow from the config and the request
// alone, for results that do not depend on the batch, to the bit.
#pragma once

#include "device/combine_pieces.cuh"
#include "device/partial_values.cuh"

// The order in which pieces are merged decides the last bits of a result. Where these must not
// depend on the batch, segment_pieces pieces at a time are merged one by one, and the segments one
// by one, whichever warps do it.
constexpr bool has_fixed_order = config::segment_pieces > 0;

template <int lines_at_once>
constexpr int pieces_in_flight = lines_at_once == 1 ? 4 : 2;
static_assert(config::segment_pieces % pieces_in_flight<1> == 0,
              "pieces under way together are of one segment");

// Some of a warp's pieces, all loads under way together; what is past the last weighs nothing.
template <int lines_at_once>
struct LoadedPieces {
  PartialState states[pieces_in_flight<lines_at_once>][2];
  uint2 values[pieces_in_flight<lines_at_once>][lines_at_once];
};

template <int lines_at_once>
__device__ __forceinline__ void load_pieces(const Rows& rows, const Line& line, int first,
                                            LoadedPieces<lines_at_once>& pieces) {
#pragma unroll
  for (int i = 0; i < pieces_in_flight<lines_at_once>; ++i) {
    const int piece = first + i;
    const bool exists = piece < rows.num_pieces;
    const long long tiles = piece * rows.tile_stride;
    pieces.states[i][0] = pieces.states[i][1] = {negative_infinity(), 0.0f};
    if (exists)
      load_states(rows.states + tiles * config::partial_rows, pieces.states[i]);
    const Element* values = line.values + tiles * lines * line_values;
#pragma unroll
    for (int j = 0; j < lines_at_once; ++j) {
      pieces.values[i][j] =
          exists ? *reinterpret_cast<const uint2*>(values + j * line_values) : make_uint2(0, 0);
    }
  }
}

// Line `j` of piece `i`, as the attention kernel had it.
template <int lines_at_once>
__device__ __forceinline__ float4 values_of(const LoadedPieces<lines_at_once>& pieces, int i,
                                            int j) {
  const float factor[2] = {restored_factor<config::dtype>(pieces.states[i][0].sum),
                           restored_factor<config::dtype>(pieces.states[i][1].sum)};
  float4 values = unpack_values<config::dtype>(pieces.values[i][j]);
  values.x *= factor[row_of_value<order>(0)];
  values.y *= factor[row_of_value<order>(1)];
  values.z *= factor[row_of_value<order>(2)];
  values.w *= factor[row_of_value<order>(3)];
  return values;
}

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
__device__ __forceinline__ void merge_segment(const Rows& rows, const Line& line, int first_piece,
                                              Merged<lines_at_once>& segment) {
  constexpr int at_once = pieces_in_flight<lines_at_once>;
  reset(segment);
  const int end = min(first_piece + config::segment_pieces, rows.num_pieces);
#pragma unroll 1
  for (int first = first_piece; first < end; first += at_once) {
    LoadedPieces<lines_at_once> pieces;
    load_pieces(rows, line, first, pieces);
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
__device__ __forceinline__ void merge_in_order(const Rows& rows, const Line& line,
                                               Merged<lines_at_once>& merged) {
#pragma unroll 1
  for (int first = 0; first < rows.num_pieces; first += config::segment_pieces) {
    Merged<lines_at_once> segment;
    merge_segment(rows, line, first, segment);
    fold(merged, segment.maximum, segment.sum, segment.values);
  }
}

// The same by a line's warps, a segment each at a time; the first adds them up. All threads of the
// block.
template <int lines_at_once>
__device__ __forceinline__ void merge_by_warps(const Rows& rows, const Line& line,
                                               const LineShare& share, int warp, int lane,
                                               WarpResults& results,
                                               Merged<lines_at_once>& merged) {
  static_assert(lines_at_once == 1, "only single lines are shared by warps");
  int first = 0;
  // Nobody goes on before all are done with the segments before.
  while (__syncthreads_or(first < rows.num_pieces)) {
    Merged<lines_at_once> segment;
    merge_segment(rows, line, first + share.first * config::segment_pieces, segment);
    results.values[warp][lane] = segment.values[0];
    results.states[warp][lane] =
        make_float4(segment.maximum[0], segment.maximum[1], segment.sum[0], segment.sum[1]);
    __syncthreads();  // all segments are written
    if (share.first == 0) {
#pragma unroll 1
      for (int i = 0; i < 1 << share.bits; ++i) {
        const float4 state = results.states[warp + i][lane];
        const float maximum[2] = {state.x, state.y};
        const float sum[2] = {state.z, state.w};
        const float4 value[1] = {results.values[warp + i][lane]};
        fold(merged, maximum, sum, value);
      }
    }
    first += config::segment_pieces << share.bits;
  }
}

template <int lines_at_once>
__device__ __forceinline__ void merge_ordered(const Rows& rows, const Line& line,
                                              const LineShare& share, int warp, int lane,
                                              WarpResults& results, Merged<lines_at_once>& merged) {
  if constexpr (lines_at_once == 1) {
    if (share.bits > 0) {
      merge_by_warps(rows, line, share, warp, lane, results, merged);
      return;
    }
  }
  merge_in_order(rows, line, merged);
}
