// The products of a thread block of prefill_block.cuh: q by keys, probabilities by values. A warp
// has whole rows.
#pragma once

#include "device/mma_sm80.cuh"
#include "device/prefill_block.cuh"
#include "device/softmax_math.cuh"

__device__ __forceinline__ void reset(Accumulators& sums) {
#pragma unroll
  for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
    for (int j = 0; j < value_tiles; ++j) {
#pragma unroll
      for (int c = 0; c < 4; ++c)
        sums.out[i][j][c] = 0.0f;
    }
    sums.row_max[i][0] = sums.row_max[i][1] = negative_infinity();
    sums.row_sum[i][0] = sums.row_sum[i][1] = 0.0f;
  }
}

__device__ __forceinline__ void compute_scores(const Element* q, const Element* k,
                                               const Position& at, Scores& scores) {
#pragma unroll
  for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
    for (int j = 0; j < key_tiles; ++j) {
#pragma unroll
      for (int c = 0; c < 4; ++c)
        scores[i][j][c] = 0.0f;
    }
  }
  const Element* q_row = q + (at.first_row + at.lane % 16) * pitch_qk + at.lane / 16 * 8;
  const Element* k_row = k + (at.lane / 16 * 8 + at.lane % 8) * pitch_qk + at.lane / 8 % 2 * 8;
#pragma unroll 12
  for (int column = 0; column < padded_qk; column += 16) {
    unsigned queries[row_tiles][4];
#pragma unroll
    for (int i = 0; i < row_tiles; ++i)
      load_matrices(queries[i], q_row + i * 16 * pitch_qk + column);
#pragma unroll
    for (int j = 0; j < key_tiles; j += 2) {
      unsigned keys[4];
      load_matrices(keys, k_row + j * 8 * pitch_qk + column);
#pragma unroll
      for (int i = 0; i < row_tiles; ++i) {
        multiply_accumulate<config::dtype>(scores[i][j], queries[i], keys[0], keys[1]);
        multiply_accumulate<config::dtype>(scores[i][j + 1], queries[i], keys[2], keys[3]);
      }
    }
  }
}

__device__ __forceinline__ void accumulate_output(const Element* v, const Position& at,
                                                  const Probabilities& probabilities,
                                                  Accumulators& sums) {
  const Element* v_row = v + at.lane % 16 * pitch_v + at.first_column + at.lane / 16 * 8;
#pragma unroll
  for (int step = 0; step < config::block_n / 16; ++step) {
#pragma unroll
    for (int j = 0; j < value_tiles; j += 2) {
      unsigned values[4];
      load_matrices_transposed(values, v_row + step * 16 * pitch_v + j * 8);
#pragma unroll
      for (int i = 0; i < row_tiles; ++i) {
        multiply_accumulate<config::dtype>(sums.out[i][j], probabilities[step][i], values[0],
                                           values[1]);
        multiply_accumulate<config::dtype>(sums.out[i][j + 1], probabilities[step][i], values[2],
                                           values[3]);
      }
    }
  }
}
