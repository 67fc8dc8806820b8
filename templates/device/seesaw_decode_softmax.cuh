// The online softmax of kernels/seesaw_decode_sm90.cu. A thread of the warpgroup has rows
// 16 * warp + lane / 4 and 8 further; a row's 64 tokens lie in four neighbouring lanes, which meet
// by shuffles. Scores are in units of log2.
#pragma once

#include "device/attention_mask.cuh"
#include "device/numeric_types.cuh"
#include "device/seesaw_decode_block.cuh"
#include "device/shared_address.cuh"
#include "device/softmax_math.cuh"
#include "device/store_matrices_sm90.cuh"

using Scores = float[tile_tokens / 2];
// Of this thread's two rows.
struct RunningSoftmax {
  float maximum[2];
  float sum[2];  // over this thread's tokens of its consumer's tiles
};

using Probabilities = unsigned[4][4];  // of 16 tokens each, as wgmma takes A in registers

// What the output so far is to be multiplied by when the maximum has risen, of this thread's two
// rows.
using RowFactors = float[2];

__device__ __forceinline__ void reset(RunningSoftmax& softmax) {
  softmax.maximum[0] = softmax.maximum[1] = negative_infinity();
  softmax.sum[0] = softmax.sum[1] = 0.0f;
}

// Which of a thread's two rows element i of an accumulator belongs to.
__device__ constexpr int row_half(int i) {
  return i / 2 % 2;
}

// The factor from scores to units of log2, without its sign. Never 0, so that hidden scores, -inf,
// stay so: 0 * -inf is a NaN.
__device__ __forceinline__ float score_scale(float softmax_scale) {
  constexpr float smallest = 1e-30f;
  return fmaxf(fabsf(softmax_scale) * log2_e, smallest);
}

// Hides what a row does not see.
__device__ __forceinline__ void mask_scores(Scores& scores, int first_token,
                                            const VisibleKeys (&keys)[2], int lane) {
#pragma unroll
  for (int i = 0; i < tile_tokens / 2; ++i) {
    const int token = first_token + i / 4 * 8 + lane % 4 * 2 + i % 2;
    const VisibleKeys& visible = keys[row_half(i)];
    if (token >= visible.end || (has_window && token < visible.begin))
      scores[i] = negative_infinity();
  }
}

// Moves to a maximum that is at least as large as the running one.
__device__ __forceinline__ float raise_maximum(RunningSoftmax& softmax, int half, float maximum) {
  const float factor = exp2_approximate(softmax.maximum[half] - finite_maximum(maximum));
  softmax.maximum[half] = maximum;
  softmax.sum[half] *= factor;
  return factor;
}

// Takes over the maxima that the other consumer left.
__device__ __forceinline__ void adopt_maxima(RunningSoftmax& softmax,
                                             const float (&maxima)[block_rows], int warp, int lane,
                                             RowFactors& factors) {
#pragma unroll
  for (int half = 0; half < 2; ++half)
    factors[half] = raise_maximum(softmax, half, maxima[warp * 16 + half * 8 + lane / 4]);
}

// A row's maximum rises only when a score exceeds it by this much, in units of log2: until then
// probabilities are at most 2^8, which costs no accuracy, and the output need not be rescaled.
constexpr float maximum_slack = 8.0f;

// Scores, still to be multiplied by `scale` > 0, to probabilities in place; running maxima and
// sums.
__device__ __forceinline__ void update_softmax(Scores& scores, float scale, RunningSoftmax& softmax,
                                               RowFactors& factors) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float maximum = negative_infinity();
#pragma unroll
    for (int i = 0; i < tile_tokens / 2; ++i) {
      if (row_half(i) == half)
        maximum = fmaxf(maximum, scores[i]);
    }
    maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, 1));
    maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, 2));
    maximum *= scale;
    const bool rises = maximum > softmax.maximum[half] + maximum_slack;
    factors[half] = raise_maximum(softmax, half, rises ? maximum : softmax.maximum[half]);
    const float base = finite_maximum(softmax.maximum[half]);
#pragma unroll
    for (int i = 0; i < tile_tokens / 2; ++i) {
      if (row_half(i) == half)
        scores[i] = exp2_approximate(fmaf(scores[i], scale, -base));
    }
  }
}

__device__ __forceinline__ void add_probabilities(const Scores& scores, RunningSoftmax& softmax) {
#pragma unroll
  for (int i = 0; i < tile_tokens / 2; ++i)
    softmax.sum[row_half(i)] += scores[i];
}

__device__ __forceinline__ void pack(const Scores& scores, Probabilities& probabilities) {
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      probabilities[step][i] =
          pack_pair<config::dtype>(scores[step * 8 + i * 2], scores[step * 8 + i * 2 + 1]);
    }
  }
}

// To shared memory as [row, token], K-major with the 128-byte swizzle.
__device__ __forceinline__ void store_probabilities(Element* box,
                                                    const Probabilities& probabilities, int warp,
                                                    int lane) {
  const int row = warp * 16 + lane % 16;
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    const int chunk = step * 2 + lane / 16;
    store_matrices(shared_address(box + row * box_columns + (chunk ^ row % 8) * 8),
                   probabilities[step]);
  }
}

__device__ __forceinline__ void store_maxima(float (&maxima)[block_rows],
                                             const RunningSoftmax& softmax, int warp, int lane) {
  if (lane % 4 == 0) {
    maxima[warp * 16 + lane / 4] = softmax.maximum[0];
    maxima[warp * 16 + 8 + lane / 4] = softmax.maximum[1];
  }
}
