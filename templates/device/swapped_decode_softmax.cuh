// The online softmax of kernels/swapped_decode_sm90.cu. Scores are held transposed, [token, row]: a
// thread of the warpgroup has tokens 16 * warp + lane / 4 and 8 further, and of every eight rows
// two, 2 * (lane % 4) and the next. The output is held the same way, [column, row], so that a row's
// factor is where it is needed.
#pragma once

#include "device/attention_mask.cuh"
#include "device/barrier_sm90.cuh"
#include "device/mma_sm80.cuh"
#include "device/softmax_math.cuh"
#include "device/store_matrices_sm90.cuh"
#include "device/swapped_decode_block.cuh"

// Element of a thread's scores: row tile j, token half, one of two rows.
__device__ constexpr int score_index(int j, int half, int c) {
  return j * 4 + half * 2 + c;
}

using Scores = float[rows / 2];

struct RunningSoftmax {
  float maximum[row_tiles][2];  // in units of log2
  float sum[row_tiles][2];      // over this thread's tokens only
};

__device__ __forceinline__ void reset(RunningSoftmax& softmax) {
#pragma unroll
  for (int j = 0; j < row_tiles; ++j) {
    softmax.maximum[j][0] = softmax.maximum[j][1] = negative_infinity();
    softmax.sum[j][0] = softmax.sum[j][1] = 0.0f;
  }
}

// Scales scores to units of log2 and hides what a row does not see.
__device__ __forceinline__ void mask_scores(Scores& scores, float scale, int first_token,
                                            int seqlen_kv, int seqlen_q, int warp, int lane) {
  const bool full = tile_is_full(seqlen_kv, seqlen_q, first_token, first_token + tile_tokens);
#pragma unroll
  for (int j = 0; j < row_tiles; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int query = (j * 8 + lane % 4 * 2 + c) / config::q_per_kv;
      const VisibleKeys keys = visible_keys(seqlen_kv, seqlen_q, query);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float& score = scores[score_index(j, half, c)];
        const int token = first_token + warp * 16 + lane / 4 + half * 8;
        score = full || token < keys.end ? score * scale : negative_infinity();
        if (has_window && !full && token < keys.begin)
          score = negative_infinity();
      }
    }
  }
}

// A value per row over the eight lanes that hold its tokens, to shared memory, one line per warp.
template <typename Merge>
__device__ __forceinline__ void store_column_parts(ColumnParts& parts, int warp, int lane,
                                                   float (&values)[row_tiles][2], Merge merge) {
#pragma unroll
  for (int j = 0; j < row_tiles; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
#pragma unroll
      for (int step = 4; step < 32; step *= 2) {
        values[j][c] = merge(values[j][c], __shfl_xor_sync(0xffffffffu, values[j][c], step));
      }
    }
    if (lane < 4) {
      *reinterpret_cast<float2*>(&parts[warp][j * 8 + lane * 2]) =
          make_float2(values[j][0], values[j][1]);
    }
  }
}

template <typename Merge>
__device__ __forceinline__ float2 merge_column_parts(const ColumnParts& parts, int j, int lane,
                                                     Merge merge) {
  float2 merged = *reinterpret_cast<const float2*>(&parts[0][j * 8 + lane % 4 * 2]);
#pragma unroll
  for (int part = 1; part < 4; ++part) {
    const float2 other = *reinterpret_cast<const float2*>(&parts[part][j * 8 + lane % 4 * 2]);
    merged.x = merge(merged.x, other.x);
    merged.y = merge(merged.y, other.y);
  }
  return merged;
}

__device__ __forceinline__ void store_row_maxima(ColumnParts& parts, int warp, int lane,
                                                 const Scores& scores) {
  float maxima[row_tiles][2];
#pragma unroll
  for (int j = 0; j < row_tiles; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      maxima[j][c] = fmaxf(scores[score_index(j, 0, c)], scores[score_index(j, 1, c)]);
    }
  }
  store_column_parts(parts, warp, lane, maxima, [](float a, float b) { return fmaxf(a, b); });
}

// Scores to probabilities, in place; running maxima and sums; the factors of the output so far.
__device__ __forceinline__ void update_softmax(const ColumnParts& parts, int lane, Scores& scores,
                                               RunningSoftmax& softmax,
                                               float (&factors)[row_tiles][2]) {
#pragma unroll
  for (int j = 0; j < row_tiles; ++j) {
    const float2 merged =
        merge_column_parts(parts, j, lane, [](float a, float b) { return fmaxf(a, b); });
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const float old_maximum = softmax.maximum[j][c];
      const float maximum = fmaxf(old_maximum, c == 0 ? merged.x : merged.y);
      const float base = finite_maximum(maximum);
      factors[j][c] = exp2_approximate(old_maximum - base);
      float& p0 = scores[score_index(j, 0, c)];
      float& p1 = scores[score_index(j, 1, c)];
      p0 = exp2_approximate(p0 - base);
      p1 = exp2_approximate(p1 - base);
      softmax.maximum[j][c] = maximum;
      softmax.sum[j][c] = softmax.sum[j][c] * factors[j][c] + p0 + p1;
    }
  }
}

// Probabilities to shared memory as [row, token], K-major with the 128-byte swizzle: the eight
// tokens of a warp's half are one 16-byte chunk of a row.
__device__ __forceinline__ void store_probabilities(ConsumerStorage& shared, int warp, int lane,
                                                    const Scores& scores) {
#pragma unroll
  for (int j = 0; j < row_tiles; ++j) {
    const int chunk = 2 * warp + lane / 8 % 2;
    Element* row = shared.p + (j * 8 + lane % 8) * tile_tokens + (chunk ^ lane % 8) * 8;
    const unsigned matrices[2] = {
        pack_pair<config::dtype>(scores[score_index(j, 0, 0)], scores[score_index(j, 0, 1)]),
        pack_pair<config::dtype>(scores[score_index(j, 1, 0)], scores[score_index(j, 1, 1)])};
    store_matrices_transposed(shared_address(row), matrices);
  }
}
