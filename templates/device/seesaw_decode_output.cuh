// The output of kernels/seesaw_decode_sm90.cu: one consumer's half of the columns of 64 query rows.
// A thread has two rows, 16 * warp + lane / 4 and 8 further, and of every eight columns two, 2 *
// (lane % 4) and the next.
#pragma once

#include "device/attention_sink.cuh"
#include "device/barrier_sm90.cuh"
#include "device/opaque_value.cuh"
#include "device/partial_results.cuh"
#include "device/partial_values.cuh"
#include "device/seesaw_decode_softmax.cuh"
#include "interface/seesaw_decode_arguments.h"

using Output = float[2][quarter_columns / 2];

// The two query rows of a thread, among those of the kv head.
struct RowRange {
  int seqlen_kv;
  int kv_head;
  int first;            // row of the block's tile
  VisibleKeys keys[2];  // of each of the thread's rows
};

__device__ __forceinline__ int row_of(const RowRange& rows, const Position& at, int half) {
  return rows.first + at.warp * 16 + half * 8 + at.lane / 4;
}

__device__ __forceinline__ void find_keys(
    const attnjit::kernel_interface::PagedDecodeArguments& call, const Position& at,
    RowRange& rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = row_of(rows, at, half);
    const bool is_valid = row < call.seqlen_q * config::q_per_kv;
    const int query = row / config::q_per_kv;
    rows.keys[half].begin = visible_keys(rows.seqlen_kv, call.seqlen_q, query).begin;
    rows.keys[half].end = is_valid ? visible_keys(rows.seqlen_kv, call.seqlen_q, query).end : 0;
  }
}

// Under a window without the rows' keys: they are found where a tile is masked, for there are no
// registers left to keep four of them.
__device__ __forceinline__ RowRange
row_range(const attnjit::kernel_interface::PagedDecodeArguments& call, const DecodeRange& range,
          const Position& at) {
  RowRange rows;
  rows.seqlen_kv = range.seqlen_kv;
  rows.kv_head = blockIdx.y;
  rows.first = blockIdx.x * block_rows;
  if constexpr (!has_window)
    find_keys(call, at, rows);
  return rows;
}

// A thread's two rows of the output by two factors.
__device__ __forceinline__ void rescale(Output& out, const RowFactors& factor) {
  const bool is_changed = factor[0] != 1.0f || factor[1] != 1.0f;
  if (!__any_sync(0xffffffffu, is_changed))
    return;
#pragma unroll
  for (int quarter = 0; quarter < 2; ++quarter) {
#pragma unroll
    for (int i = 0; i < quarter_columns / 2; ++i)
      out[quarter][i] *= factor[row_half(i)];
  }
}

// Both consumers' sums, each relative to the same maximum.
__device__ __forceinline__ void add_sums(SharedStorage& shared, RunningSoftmax& softmax,
                                         const Position& at) {
  constexpr int sums_barrier = 5;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float& sum = softmax.sum[half];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (at.lane % 4 == 0)
      shared.sums[at.consumer][at.warp * 16 + half * 8 + at.lane / 4] = sum;
  }
  sync_named_barrier<consumer_threads>(sums_barrier);  // all sums are written
#pragma unroll
  for (int half = 0; half < 2; ++half)
    softmax.sum[half] += shared.sums[1 - at.consumer][at.warp * 16 + half * 8 + at.lane / 4];
  sync_named_barrier<consumer_threads>(sums_barrier);  // the sums are no longer read
}

// word[i] of lane 4k + j becomes word[j] of lane 4k + i.
__device__ __forceinline__ void transpose_in_quads(unsigned (&word)[4], int lane) {
#pragma unroll
  for (int step = 1; step < 4; step *= 2) {
    const bool is_upper = (lane & step) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & step) == 0) {
        const unsigned sent = is_upper ? word[i] : word[i | step];
        const unsigned received = __shfl_xor_sync(0xffffffffu, sent, step);
        (is_upper ? word[i] : word[i | step]) = received;
      }
    }
  }
}

// 16 bytes a lane, 64 a quad: four lanes exchange what they hold of 32 columns.
__device__ __forceinline__ void store_final_row(Element* row, const Output& out, int half,
                                                float scale, bool is_valid, const Position& at) {
#pragma unroll
  for (int first = 0; first < half_columns; first += 32) {
    const auto& columns = out[first / quarter_columns];
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int element = (first % quarter_columns / 8 + i) * 4 + half * 2;
      words[i] = pack_pair<config::dtype>(columns[element] * scale, columns[element + 1] * scale);
    }
    transpose_in_quads(words, at.lane);
    if (is_valid) {
      *reinterpret_cast<uint4*>(row + first + at.lane % 4 * 8) =
          make_uint4(words[0], words[1], words[2], words[3]);
    }
  }
}

// To a piece's partial results, in lines; a warp that has no row of the call, none.
__device__ __forceinline__ void store_partial(
    const attnjit::kernel_interface::PagedDecodeArguments& call, const DecodeRange& range,
    const RowRange& rows, const RunningSoftmax& softmax, const Position& at, const Output& out) {
  if (rows.first + at.warp * 16 >= call.seqlen_q * config::q_per_kv)
    return;
  const long long tile = tile_index(call.partial, call.num_kv_heads, range.piece, rows.kv_head,
                                    rows.first / block_rows);
  constexpr int lines = lines_of_tile(block_rows, config::head_dim_v);
  constexpr int lines_of_group = lines / (block_rows / group_rows<PartialOrder::accumulators>);
  const long long first_line =
      tile * lines + at.warp * lines_of_group + at.consumer * (lines_of_group / 2);
  Element* values = call.partial.out + first_line * line_values + at.lane * 4;
  const float first = stored_factor<config::dtype>(softmax.sum[0]);
  const float second = stored_factor<config::dtype>(softmax.sum[1]);
#pragma unroll
  for (int i = 0; i < half_columns / 8; ++i) {
    const float* value = &out[i * 8 / quarter_columns][i * 8 % quarter_columns / 2];
    store_in_line<config::dtype>(values + i * line_values, value[0] * first, value[1] * first,
                                 value[2] * second, value[3] * second);
  }
  if (at.consumer == 0 && at.lane % 4 == 0) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      constexpr PartialOrder order = PartialOrder::accumulators;
      const int place = at.warp * group_rows<order> + state_place<order>(at.lane / 4 + half * 8);
      call.partial.states[tile * block_rows + place] = {softmax.maximum[half], softmax.sum[half]};
    }
  }
}

// To the output.
__device__ __forceinline__ void store_final(
    const attnjit::kernel_interface::PagedDecodeArguments& call, const DecodeRange& range,
    const RowRange& rows, const RunningSoftmax& softmax, const Position& at, const Output& out) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = softmax.sum[half];
    const bool sees_nothing = sum == 0.0f;
    const int row = opaque(row_of(rows, at, half));  // else kept from the beginning on
    const bool is_valid = row < call.seqlen_q * config::q_per_kv;
    const int query = row / config::q_per_kv;
    const int head = rows.kv_head * config::q_per_kv + row % config::q_per_kv;
    Element* out_row = static_cast<Element*>(call.out) + range.request * call.out_strides.batch +
                       query * call.out_strides.token + head * call.out_strides.head +
                       at.consumer * half_columns;
    const float sink = load_sink<config::has_sinks>(call.sinks, head);
    const float scale = sees_nothing ? 0.0f
                                     : reciprocal_approximate(denominator<config::has_sinks>(
                                           sink, softmax.maximum[half], sum));
    store_final_row(out_row, out, half, scale, is_valid, at);
    if (at.consumer == 0 && at.lane % 4 == 0 && is_valid && call.lse != nullptr) {
      call.lse[range.request * call.lse_strides.batch + query * call.lse_strides.token +
               head * call.lse_strides.head] =
          sees_nothing ? negative_infinity()
                       : (softmax.maximum[half] + log2_approximate(sum)) * ln_2;
    }
  }
}

__device__ __forceinline__ void store_output(
    const attnjit::kernel_interface::PagedDecodeArguments& call, const DecodeRange& range,
    const RowRange& rows, const RunningSoftmax& softmax, const Position& at, const Output& out) {
  if (range.piece >= 0)
    store_partial(call, range, rows, softmax, at, out);
  if (opaque(range.piece) < 0)
    store_final(call, range, rows, softmax, at, out);
}
