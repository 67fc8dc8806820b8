// The output of kernels/swapped_decode_sm90.cu, transposed: a thread has of every box of V the
// columns 16 * warp + lane / 4 and 8 further, of every eight rows 2 * (lane % 4) and the next.
// Boxes count as they lie in the ring, those that this consumer finishes first. At a request's end
// the consumers exchange what they have of each other's columns and finish them.
#pragma once

#include "device/attention_sink.cuh"
#include "device/barrier_sm90.cuh"
#include "device/decode_range.cuh"
#include "device/opaque_value.cuh"
#include "device/partial_results.cuh"
#include "device/partial_values.cuh"
#include "device/swapped_decode_softmax.cuh"
#include "interface/swapped_decode_arguments.h"

using namespace attnjit::kernel_interface;

using Output = float[num_value_boxes][rows / 2];

__device__ __forceinline__ void rescale_output(Output& out, const float (&factors)[row_tiles][2]) {
  bool is_changed = false;
#pragma unroll
  for (int j = 0; j < row_tiles; ++j) {
    is_changed = is_changed || factors[j][0] != 1.0f || factors[j][1] != 1.0f;
  }
  if (!__any_sync(0xffffffffu, is_changed))
    return;
#pragma unroll
  for (int box = 0; box < num_value_boxes; ++box) {
#pragma unroll
    for (int j = 0; j < row_tiles; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        out[box][score_index(j, half, 0)] *= factors[j][0];
        out[box][score_index(j, half, 1)] *= factors[j][1];
      }
    }
  }
}

// Each row's sum over all of a consumer's tokens, in all its threads.
__device__ __forceinline__ void add_up_sums(ColumnParts& parts, const Position& at,
                                            RunningSoftmax& softmax) {
  const auto add = [](float a, float b) { return a + b; };
  sync_consumer(at.consumer);  // the last tile's maxima are no longer read
  store_column_parts(parts, at.warp, at.lane, softmax.sum, add);
  sync_consumer(at.consumer);  // every warp's sums are written
#pragma unroll
  for (int j = 0; j < row_tiles; ++j) {
    const float2 sums = merge_column_parts(parts, j, at.lane, add);
    softmax.sum[j][0] = sums.x;
    softmax.sum[j][1] = sums.y;
  }
}

__device__ __forceinline__ void hand_over(MergeStorage& merge, const Position& at,
                                          const RunningSoftmax& softmax, const Output& out) {
  const int thread = at.warp * 32 + at.lane;
#pragma unroll
  for (int box = 0; box < boxes_per_consumer; ++box) {
#pragma unroll
    for (int j = 0; j < row_tiles; ++j) {
      const float* value = &out[boxes_per_consumer + box][j * 4];
      merge.out[box * row_tiles + j][thread] = make_float4(value[0], value[1], value[2], value[3]);
    }
  }
  if (at.warp == 0 && at.lane < 4) {
#pragma unroll
    for (int j = 0; j < row_tiles; ++j) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        merge.maximum[j * 8 + at.lane * 2 + c] = softmax.maximum[j][c];
        merge.sum[j * 8 + at.lane * 2 + c] = softmax.sum[j][c];
      }
    }
  }
}

// The columns that this consumer finishes, of both consumers' tokens.
using FinalOutput = float[boxes_per_consumer][rows / 2];

__device__ __forceinline__ void take_over(const MergeStorage& merge, const Position& at,
                                          RunningSoftmax& softmax, FinalOutput& out) {
  const int thread = at.warp * 32 + at.lane;
#pragma unroll
  for (int j = 0; j < row_tiles; ++j) {
    float own[2];
    float other[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int row = j * 8 + at.lane % 4 * 2 + c;
      const float maximum = fmaxf(softmax.maximum[j][c], merge.maximum[row]);
      const float base = finite_maximum(maximum);
      own[c] = exp2_approximate(softmax.maximum[j][c] - base);
      other[c] = exp2_approximate(merge.maximum[row] - base);
      softmax.sum[j][c] = softmax.sum[j][c] * own[c] + merge.sum[row] * other[c];
      softmax.maximum[j][c] = maximum;
    }
#pragma unroll
    for (int box = 0; box < boxes_per_consumer; ++box) {
      const float4 values = merge.out[box * row_tiles + j][thread];
      float* const value = &out[box][j * 4];
      value[0] = value[0] * own[0] + values.x * other[0];
      value[1] = value[1] * own[1] + values.y * other[1];
      value[2] = value[2] * own[0] + values.z * other[0];
      value[3] = value[3] * own[1] + values.w * other[1];
    }
  }
}

// To a piece's partial results, in lines.
__device__ __forceinline__ void store_partial(const PagedDecodeArguments& call,
                                              const DecodeRange& range, const Position& at,
                                              const RunningSoftmax& softmax,
                                              const FinalOutput& out) {
  const long long tile = tile_index(call.partial, call.num_kv_heads, range.piece, blockIdx.y, 0);
  constexpr int lines = lines_of_tile(rows, config::head_dim_v);
  constexpr int lines_of_group = lines / row_tiles;
  const long long first_line =
      tile * lines + at.consumer * (lines_of_group / num_consumers) + at.warp;
  Element* values = call.partial.out + first_line * line_values + at.lane * 4;
#pragma unroll
  for (int j = 0; j < row_tiles; ++j) {
    const float even = stored_factor<config::dtype>(softmax.sum[j][0]);
    const float odd = stored_factor<config::dtype>(softmax.sum[j][1]);
#pragma unroll
    for (int box = 0; box < boxes_per_consumer; ++box) {
      const float* value = &out[box][j * 4];
      store_in_line<config::dtype>(values + (j * lines_of_group + box * 4) * line_values,
                                   value[0] * even, value[1] * odd, value[2] * even,
                                   value[3] * odd);
    }
  }
  if (at.consumer == 0 && at.warp == 0 && at.lane < 4) {
#pragma unroll
    for (int j = 0; j < row_tiles; ++j) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int row = j * 8 + at.lane * 2 + c;
        call.partial.states[tile * rows + row] = {softmax.maximum[j][c], softmax.sum[j][c]};
      }
    }
  }
}

// To the output.
__device__ __forceinline__ void store_final(const PagedDecodeArguments& call,
                                            const DecodeRange& range, const Position& at,
                                            const RunningSoftmax& softmax, const FinalOutput& out) {
  const int column = at.consumer * boxes_per_consumer * box_columns + at.warp * 16 + at.lane / 4;
#pragma unroll
  for (int j = 0; j < row_tiles; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int row = j * 8 + at.lane % 4 * 2 + c;
      if (row >= call.seqlen_q * config::q_per_kv)
        continue;
      const float sum = softmax.sum[j][c];
      const bool sees_nothing = sum == 0.0f;
      const int query = row / config::q_per_kv;
      const int head = blockIdx.y * config::q_per_kv + row % config::q_per_kv;
      const float sink = load_sink<config::has_sinks>(call.sinks, head);
      const float scale = sees_nothing ? 0.0f
                                       : reciprocal_approximate(denominator<config::has_sinks>(
                                             sink, softmax.maximum[j][c], sum));
      Element* out_row = static_cast<Element*>(call.out) + range.request * call.out_strides.batch +
                         query * call.out_strides.token + head * call.out_strides.head + column;
#pragma unroll
      for (int box = 0; box < boxes_per_consumer; ++box) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float value = out[box][score_index(j, half, c)] * scale;
          out_row[box * box_columns + half * 8] =
              static_cast<Element>(pack_pair<config::dtype>(value, 0.0f));
        }
      }
      if (at.consumer == 0 && at.warp == 0 && at.lane < 4 && call.lse != nullptr) {
        call.lse[range.request * call.lse_strides.batch + query * call.lse_strides.token +
                 head * call.lse_strides.head] =
            sees_nothing ? negative_infinity()
                         : (softmax.maximum[j][c] + log2_approximate(sum)) * ln_2;
      }
    }
  }
}

// A request's end, all threads of the consumers.
__device__ __forceinline__ void finish_request(const PagedDecodeArguments& call,
                                               SharedStorage& shared, const DecodeRange& range,
                                               const Position& at, RunningSoftmax& softmax,
                                               Output& out) {
  constexpr int merge_barrier = 3;
  add_up_sums(shared.column_parts[at.consumer], at, softmax);
  hand_over(shared.merge[at.consumer], at, softmax, out);
  sync_named_barrier<consumer_threads>(merge_barrier);  // all is handed over
  FinalOutput final;
#pragma unroll
  for (int box = 0; box < boxes_per_consumer; ++box) {
#pragma unroll
    for (int i = 0; i < rows / 2; ++i)
      final[box][i] = out[box][i];
  }
  take_over(shared.merge[1 - at.consumer], at, softmax, final);
  sync_named_barrier<consumer_threads>(merge_barrier);  // what was handed over is read
  if (range.piece >= 0)
    store_partial(call, range, at, softmax, final);
  if (opaque(range.piece) < 0)
    store_final(call, range, at, softmax, final);
}
