// The online softmax of kernels/prefill_sm80.cu: a row's keys are in the four lanes that share it.
#pragma once

#include "device/numeric_types.cuh"
#include "device/prefill_block.cuh"
#include "device/softmax_math.cuh"

// Over the four lanes of a row.
__device__ __forceinline__ float row_maximum(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ float row_total(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// Scores, in units of log2 once multiplied by `scale`, to probabilities relative to the row's new
// maximum; what was summed up before is rescaled to that. `scale` is positive.
__device__ __forceinline__ void update_softmax(Scores& scores, float scale, Accumulators& sums) {
#pragma unroll
  for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float maximum = negative_infinity();
#pragma unroll
      for (int j = 0; j < key_tiles; ++j)
        maximum = fmaxf(maximum, fmaxf(scores[i][j][half * 2], scores[i][j][half * 2 + 1]));
      maximum = fmaxf(sums.row_max[i][half], row_maximum(maximum) * scale);
      const float base = finite_maximum(maximum);
      const float factor = exp2_approximate(sums.row_max[i][half] - base);
      sums.row_max[i][half] = maximum;
      float sum = sums.row_sum[i][half] * factor;
#pragma unroll
      for (int j = 0; j < key_tiles; ++j) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& score = scores[i][j][half * 2 + c];
          score = exp2_approximate(fmaf(score, scale, -base));
          sum += score;
        }
      }
      sums.row_sum[i][half] = sum;
#pragma unroll
      for (int j = 0; j < value_tiles; ++j) {
        sums.out[i][j][half * 2] *= factor;
        sums.out[i][j][half * 2 + 1] *= factor;
      }
    }
  }
}

// Rounds the probabilities of all keys: the threads that hold them are those that a product wants
// them from.
__device__ __forceinline__ void pack_probabilities(const Scores& scores,
                                                   Probabilities& probabilities) {
#pragma unroll
  for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
    for (int j = 0; j < key_tiles; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        probabilities[j / 2][i][j % 2 * 2 + half] =
            pack_pair<config::dtype>(scores[i][j][half * 2], scores[i][j][half * 2 + 1]);
      }
    }
  }
}
