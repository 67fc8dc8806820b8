// Merging pieces in whatever order keeps most loads under way, which follows from the batch.
#pragma once

#include "device/combine_pieces.cuh"

// A piece that saw nothing weighs nothing, and what it holds may be no number.
__device__ __forceinline__ float weighted(float weight, float value) {
  return weight == 0.0f ? 0.0f : weight * value;
}

__device__ __forceinline__ void add(float4& sum, const float (&weight)[2], const float4& values) {
  sum.x += weighted(weight[row_of_value<order>(0)], values.x);
  sum.y += weighted(weight[row_of_value<order>(1)], values.y);
  sum.z += weighted(weight[row_of_value<order>(2)], values.z);
  sum.w += weighted(weight[row_of_value<order>(3)], values.w);
}

// Moves both rows to maxima that are at least as large.
template <int lines_at_once>
__device__ __forceinline__ void raise_maxima(Merged<lines_at_once>& merged,
                                             const float (&maximum)[2]) {
  float factor[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
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

// This warp's pieces: `group`, `group` + warps_per_line, …
template <int lines_at_once>
__device__ __forceinline__ void merge_pieces(const Line& line, int group, int warps_per_line,
                                             Merged<lines_at_once>& merged) {
  constexpr int at_once = pieces_in_flight<lines_at_once>;
#pragma unroll 1
  for (int first = group; first < line.num_pieces; first += warps_per_line * at_once) {
    LoadedPieces<lines_at_once> pieces;
    load_pieces(line, first, warps_per_line, pieces);
    float maximum[2] = {merged.maximum[0], merged.maximum[1]};
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      maximum[0] = fmaxf(maximum[0], pieces.states[i][0].maximum);
      maximum[1] = fmaxf(maximum[1], pieces.states[i][1].maximum);
    }
    raise_maxima(merged, maximum);
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const float weight[2] = {weight_of(pieces.states[i][0].maximum, maximum[0]),
                               weight_of(pieces.states[i][1].maximum, maximum[1])};
      merged.sum[0] += weight[0] * pieces.states[i][0].sum;
      merged.sum[1] += weight[1] * pieces.states[i][1].sum;
#pragma unroll
      for (int j = 0; j < lines_at_once; ++j)
        add(merged.values[j], weight, values_of(pieces, i, j));
    }
  }
}

// The results of a line's warps, in its first. All threads of the block.
template <int lines_at_once>
__device__ __forceinline__ void merge_warps(int warps_per_line, int group, int lane,
                                            Merged<lines_at_once>& merged) {
  static_assert(lines_at_once == 1, "only single lines are shared by warps");
  __shared__ float4 values[config::num_warps][32];
  __shared__ float4 states[config::num_warps][32];  // maxima, sums
  const int warp = threadIdx.x / 32;
  __syncthreads();  // the results of the lines before are no longer read
  values[warp][lane] = merged.values[0];
  states[warp][lane] =
      make_float4(merged.maximum[0], merged.maximum[1], merged.sum[0], merged.sum[1]);
  __syncthreads();  // all results are written
  if (group > 0)
    return;
  float maximum[2] = {merged.maximum[0], merged.maximum[1]};
#pragma unroll 4
  for (int i = 1; i < warps_per_line; ++i) {
    const float2 other = *reinterpret_cast<const float2*>(&states[warp + i][lane]);
    maximum[0] = fmaxf(maximum[0], other.x);
    maximum[1] = fmaxf(maximum[1], other.y);
  }
  raise_maxima(merged, maximum);
#pragma unroll 4
  for (int i = 1; i < warps_per_line; ++i) {
    const float4 other = states[warp + i][lane];
    const float weight[2] = {weight_of(other.x, maximum[0]), weight_of(other.y, maximum[1])};
    merged.sum[0] += other.z * weight[0];
    merged.sum[1] += other.w * weight[1];
    add(merged.values[0], weight, values[warp + i][lane]);
  }
}
