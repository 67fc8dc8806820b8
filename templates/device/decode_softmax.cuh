// The online softmax of kernels/paged_decode_sm80.cu: a row's keys are spread over the warps of one
// row of the warp grid, which meet in shared memory. Barriers are the caller's.
#pragma once

#include "device/decode_block.cuh"
#include "device/softmax_math.cuh"

using Scores = float[score_row_tiles][score_key_tiles][4];

// Maxima over a warp's own keys, to be merged by all warps after a barrier.
__device__ __forceinline__ void store_row_maxima(SharedStorage& shared, const Position& at,
                                                 const Scores& scores) {
#pragma unroll
  for (int i = 0; i < score_row_tiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float maximum = negative_infinity();
#pragma unroll
      for (int j = 0; j < score_key_tiles; ++j) {
        maximum = fmaxf(maximum, fmaxf(scores[i][j][half * 2], scores[i][j][half * 2 + 1]));
      }
      maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, 1));
      maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, 2));
      if (at.lane % 4 == 0) {
        shared
            .row_parts[at.warp_n][(at.warp_m * score_row_tiles + i) * 16 + at.lane / 4 + half * 8] =
            maximum;
      }
    }
  }
}

__device__ __forceinline__ float merged_maximum(const SharedStorage& shared, int row,
                                                float maximum) {
#pragma unroll
  for (int part = 0; part < warps_n; ++part) {
    maximum = fmaxf(maximum, shared.row_parts[part][row]);
  }
  return maximum;
}

// Probabilities of a warp's scores, into shared memory; the running sums of this thread's columns.
__device__ __forceinline__ void update_softmax(SharedStorage& shared, const Position& at,
                                               const Scores& scores, Accumulators& sums) {
#pragma unroll
  for (int i = 0; i < score_row_tiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = (at.warp_m * score_row_tiles + i) * 16 + at.lane / 4 + half * 8;
      const float old_maximum = sums.score_max[i][half];
      const float maximum = merged_maximum(shared, row, old_maximum);
      const float base = finite_maximum(maximum);
      float sum = sums.score_sum[i][half] * exp2_approximate(old_maximum - base);
      Element* p_row = shared.p + row * pitch_p + at.warp_n * score_key_tiles * 8 + at.lane % 4 * 2;
#pragma unroll
      for (int j = 0; j < score_key_tiles; ++j) {
        const float p0 = exp2_approximate(scores[i][j][half * 2] - base);
        const float p1 = exp2_approximate(scores[i][j][half * 2 + 1] - base);
        sum += p0 + p1;
        *reinterpret_cast<unsigned*>(p_row + j * 8) = pack_pair<config::dtype>(p0, p1);
      }
      sums.score_max[i][half] = maximum;
      sums.score_sum[i][half] = sum;
    }
  }
}

__device__ __forceinline__ void rescale_output(const SharedStorage& shared, const Position& at,
                                               Accumulators& sums) {
#pragma unroll
  for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float old_maximum = sums.row_max[i][half];
      const float maximum = merged_maximum(shared, i * 16 + at.lane / 4 + half * 8, old_maximum);
      const float factor = exp2_approximate(old_maximum - finite_maximum(maximum));
      sums.row_max[i][half] = maximum;
#pragma unroll
      for (int j = 0; j < warp_value_tiles; ++j) {
        sums.out[i][j][half * 2] *= factor;
        sums.out[i][j][half * 2 + 1] *= factor;
      }
    }
  }
}

// Sums over a warp's own keys, to be merged by all warps after a barrier.
__device__ __forceinline__ void store_row_sums(SharedStorage& shared, const Position& at,
                                               const Accumulators& sums) {
#pragma unroll
  for (int i = 0; i < score_row_tiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = sums.score_sum[i][half];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      if (at.lane % 4 == 0) {
        shared
            .row_parts[at.warp_n][(at.warp_m * score_row_tiles + i) * 16 + at.lane / 4 + half * 8] =
            sum;
      }
    }
  }
}
