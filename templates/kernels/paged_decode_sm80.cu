// Split-KV decode over a paged cache with mma.sync and cp.async: MLA (V a prefix of K), MQA, GQA
// and MHA, any head ratio, seqlen_q >= 1. Grid: x = row tiles, y = kv heads, z = parts of the
// schedule.
//
// The seqlen_q * q_per_kv query rows that share a kv head are packed, query-major, into tiles of
// block_m rows. Per tile of block_n keys: scores by a grid of warps (warps_m x warps_n), row maxima
// through shared memory, probabilities through shared memory, then every warp multiplies all rows
// by its own columns of V.
#include "kernel_config.cuh"

#include "device/async_copy.cuh"
#include "device/attention_mask.cuh"
#include "device/attention_sink.cuh"
#include "device/decode_block.cuh"
#include "device/decode_range.cuh"
#include "device/decode_softmax.cuh"
#include "device/mma_sm80.cuh"
#include "device/numeric_types.cuh"
#include "device/opaque_value.cuh"
#include "device/paged_tile.cuh"
#include "device/partial_results.cuh"
#include "device/partial_values.cuh"
#include "device/softmax_math.cuh"
#include "interface/paged_decode_arguments.h"

using namespace attnjit::kernel_interface;

namespace {

// Output columns take most of a thread's registers: what can be computed again is not kept. Of more
// than 16 tiles that would fit, but the assemblers before 13.0 keep more than they have room for.
constexpr bool is_short_of_registers =
    row_tiles * warp_value_tiles * 4 > 96 || warp_value_tiles > 16;

__device__ __forceinline__ void reset(Accumulators& sums) {
#pragma unroll
  for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
    for (int j = 0; j < warp_value_tiles; ++j) {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        sums.out[i][j][k] = 0.0f;
    }
    sums.row_max[i][0] = sums.row_max[i][1] = negative_infinity();
  }
#pragma unroll
  for (int i = 0; i < score_row_tiles; ++i) {
    sums.score_max[i][0] = sums.score_max[i][1] = negative_infinity();
    sums.score_sum[i][0] = sums.score_sum[i][1] = 0.0f;
  }
}

// The columns past head_dim_qk are multiplied too: zero them once, no copy touches them again.
template <int padding>
__device__ __forceinline__ void clear_padding(SharedStorage& shared) {
  if constexpr (padding > 0) {
    for (int i = threadIdx.x; i < config::block_m * padding; i += num_threads) {
      shared.q[i / padding * pitch_qk + config::head_dim_qk + i % padding] = 0;
    }
    for (int i = threadIdx.x; i < config::num_stages * config::block_n * padding;
         i += num_threads) {
      const int row = i / padding;
      shared.kv[row / config::block_n]
               [row % config::block_n * pitch_qk + config::head_dim_qk + i % padding] = 0;
    }
  }
}

__device__ __forceinline__ void load_queries(SharedStorage& shared,
                                             const PagedDecodeArguments& arguments,
                                             const Work& work) {
  constexpr int chunks = config::head_dim_qk / 8;
#pragma unroll 1
  for (int i = threadIdx.x; i < config::block_m * chunks; i += num_threads) {
    const int row = work.first_row + i / chunks;
    const bool valid = row < work.num_rows;
    const int query = valid ? row / config::q_per_kv : 0;
    const int head = work.kv_head * config::q_per_kv + (valid ? row % config::q_per_kv : 0);
    const Element* source =
        static_cast<const Element*>(arguments.q) + work.request * arguments.q_strides.batch +
        query * arguments.q_strides.token + head * arguments.q_strides.head + i % chunks * 8;
    copy_async_16(&shared.q[i / chunks * pitch_qk + i % chunks * 8], source, valid);
  }
}

__device__ __forceinline__ void find_pages(SharedStorage& shared,
                                           const PagedDecodeArguments& arguments, const Work& work,
                                           int block) {
  const int* table = arguments.block_table + work.request * arguments.block_table_stride;
  // What no row sees before a window may be anything, as past the end.
  const int first_key = has_window ? visible_keys(work.seqlen_kv, arguments.seqlen_q,
                                                  work.first_row / config::q_per_kv)
                                         .begin
                                   : 0;
  for (int i = threadIdx.x; i < config::block_n; i += num_threads) {
    const int token = block * config::block_n + i;
    const bool is_visible =
        block < work.end_block && token < work.seqlen_kv && (!has_window || token >= first_key);
    shared.pages[block & 1][i] = is_visible ? table[token / config::page_size] : -1;
  }
}

__device__ __forceinline__ void load_tiles(SharedStorage& shared,
                                           const PagedDecodeArguments& arguments, const Work& work,
                                           int block) {
  if (block < work.end_block) {
    Element* tile = shared.kv[(block - work.first_block) % config::num_stages];
    const PagedTile source = {shared.pages[block & 1], block * config::block_n, work.request,
                              work.kv_head};
    source.copy<config::block_n, config::head_dim_qk, pitch_qk, config::page_size, num_threads>(
        tile, arguments.k_cache, arguments.k_strides);
    if constexpr (!value_is_prefix) {
      source.copy<config::block_n, config::head_dim_v, pitch_v, config::page_size, num_threads>(
          tile + config::block_n * pitch_qk, arguments.v_cache, arguments.v_strides);
    }
  }
  commit_copies();
}

__device__ __forceinline__ void compute_scores(const SharedStorage& shared, const Element* k,
                                               const Position& at, Scores& scores) {
#pragma unroll
  for (int i = 0; i < score_row_tiles; ++i) {
#pragma unroll
    for (int j = 0; j < score_key_tiles; ++j) {
#pragma unroll
      for (int c = 0; c < 4; ++c)
        scores[i][j][c] = 0.0f;
    }
  }
  const Element* q_row =
      shared.q + (at.warp_m * score_row_tiles * 16 + at.lane % 16) * pitch_qk + at.lane / 16 * 8;
  const Element* k_row =
      k + (at.warp_n * score_key_tiles * 8 + at.lane % 8) * pitch_qk + at.lane / 8 * 8;
#pragma unroll 3
  for (int column = 0; column < padded_qk; column += 32) {
    unsigned q[score_row_tiles][2][4];
#pragma unroll
    for (int i = 0; i < score_row_tiles; ++i) {
      load_matrices(q[i][0], q_row + i * 16 * pitch_qk + column);
      load_matrices(q[i][1], q_row + i * 16 * pitch_qk + column + 16);
    }
#pragma unroll
    for (int j = 0; j < score_key_tiles; ++j) {
      unsigned keys[4];
      load_matrices(keys, k_row + j * 8 * pitch_qk + column);
#pragma unroll
      for (int i = 0; i < score_row_tiles; ++i) {
        multiply_accumulate<config::dtype>(scores[i][j], q[i][0], keys[0], keys[1]);
        multiply_accumulate<config::dtype>(scores[i][j], q[i][1], keys[2], keys[3]);
      }
    }
  }
}

// Scales the scores to units of log2 and hides what a row does not see.
__device__ __forceinline__ void mask_scores(const PagedDecodeArguments& arguments, const Work& work,
                                            const Position& at, int block, Scores& scores) {
  const float scale = arguments.softmax_scale * log2_e;
  // Over the main loop, what follows of each row would take registers that there are not.
  const int first_row =
      has_window || is_short_of_registers ? opaque(work.first_row) : work.first_row;
  const bool full = tile_is_full(work.seqlen_kv, arguments.seqlen_q, block * config::block_n,
                                 (block + 1) * config::block_n);
  const int first_key = block * config::block_n + at.warp_n * score_key_tiles * 8 + at.lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < score_row_tiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + (at.warp_m * score_row_tiles + i) * 16 + at.lane / 4 + half * 8;
      const int query = row / config::q_per_kv;
      VisibleKeys keys = visible_keys(work.seqlen_kv, arguments.seqlen_q, query);
      if constexpr (mask_is_materialized<config::mask>)
        keys.end = min(keys.end, arguments.mask_keys);
      const int head = work.kv_head * config::q_per_kv + row % config::q_per_kv;
      const long long mask_row = work.request * arguments.mask_strides.batch +
                                 head * arguments.mask_strides.head +
                                 query * arguments.mask_strides.query;
#pragma unroll
      for (int j = 0; j < score_key_tiles; ++j) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& score = scores[i][j][half * 2 + c];
          score *= scale;
          if (full)
            continue;
          const int key = first_key + j * 8 + c;
          if (row >= work.num_rows || key >= keys.end || (has_window && key < keys.begin)) {
            score = negative_infinity();
          } else {
            score = apply_materialized_mask<config::mask, config::dtype_mask>(
                score, arguments.mask, mask_row + key * arguments.mask_strides.key);
          }
        }
      }
    }
  }
}

__device__ __forceinline__ void accumulate_output(const SharedStorage& shared, const Element* v,
                                                  const Position& at, Accumulators& sums) {
  const Element* p_row = shared.p + at.lane % 16 * pitch_p + at.lane / 16 * 8;
  // Unrolled, the next probabilities are loaded beside those in use.
#pragma unroll(is_short_of_registers ? 1 : config::block_n / 32)
  for (int key = 0; key < config::block_n; key += 32) {
    unsigned p[row_tiles][2][4];
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
      load_matrices(p[i][0], p_row + i * 16 * pitch_p + key);
      load_matrices(p[i][1], p_row + i * 16 * pitch_p + key + 16);
    }
#pragma unroll
    for (int j = 0; j < warp_value_tiles; ++j) {
      const int tile = at.warp * warp_value_tiles + j;
      if (value_tiles % config::num_warps == 0 || tile < value_tiles) {
        unsigned values[4];
        load_matrices_transposed(values, v + (key + at.lane) * pitch_v + tile * 8);
#pragma unroll
        for (int i = 0; i < row_tiles; ++i) {
          multiply_accumulate<config::dtype>(sums.out[i][j], p[i][0], values[0], values[1]);
          multiply_accumulate<config::dtype>(sums.out[i][j], p[i][1], values[2], values[3]);
        }
      }
    }
  }
}

// One row of this thread's output columns: to `out` if the request has one piece, else to the
// piece's partial results.
__device__ __forceinline__ void store_row(const PagedDecodeArguments& arguments, const Work& work,
                                          const Position& at, const float (*columns)[4], int half,
                                          int row, const PartialState& state, int piece) {
  const int first_tile = at.warp * warp_value_tiles;
  const int query = row / config::q_per_kv;
  const int head = work.kv_head * config::q_per_kv + row % config::q_per_kv;
  const bool sees_nothing = state.sum == 0.0f;
  const float sink = load_sink<config::has_sinks>(arguments.sinks, head);
  const float scale =
      piece >= 0 ? stored_factor<config::dtype>(state.sum)
      : sees_nothing
          ? 0.0f
          : reciprocal_approximate(denominator<config::has_sinks>(sink, state.maximum, state.sum));
  const long long partial_row =
      tile_index(arguments.partial, arguments.num_kv_heads, piece, work.kv_head, row);
  Element* out = static_cast<Element*>(arguments.out) + work.request * arguments.out_strides.batch +
                 query * arguments.out_strides.token + head * arguments.out_strides.head;
#pragma unroll
  for (int j = 0; j < warp_value_tiles; ++j) {
    const int column = (first_tile + j) * 8 + at.lane % 4 * 2;
    if (value_tiles % config::num_warps != 0 && first_tile + j >= value_tiles)
      continue;
    constexpr int row_values = lines_of_tile(1, config::head_dim_v) * line_values;
    Element* row_out = piece >= 0 ? arguments.partial.out + partial_row * row_values : out;
    *reinterpret_cast<unsigned*>(row_out + column) =
        pack_pair<config::dtype>(columns[j][half * 2] * scale, columns[j][half * 2 + 1] * scale);
  }
  if (at.warp == 0 && at.lane % 4 == 0) {
    if (piece >= 0) {
      arguments.partial.states[partial_row] = state;
    } else if (arguments.lse != nullptr) {
      arguments.lse[work.request * arguments.lse_strides.batch +
                    query * arguments.lse_strides.token + head * arguments.lse_strides.head] =
          sees_nothing ? negative_infinity() : (state.maximum + log2_approximate(state.sum)) * ln_2;
    }
  }
}

__device__ __forceinline__ void store_output(const SharedStorage& shared,
                                             const PagedDecodeArguments& arguments,
                                             const Work& work, const Position& at,
                                             const Accumulators& sums, int piece) {
#pragma unroll
  for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int tile_row = i * 16 + at.lane / 4 + half * 8;
      const int row = work.first_row + tile_row;
      if (row >= work.num_rows)
        continue;
      float sum = 0.0f;
#pragma unroll
      for (int part = 0; part < warps_n; ++part)
        sum += shared.row_parts[part][tile_row];
      store_row(arguments, work, at, sums.out[i], half, row, {sums.row_max[i][half], sum}, piece);
    }
  }
}

__device__ __forceinline__ QueryRange queries_of_tile(int tile, int num_rows) {
  const int first_row = tile * config::block_m;
  return queries_of_rows(first_row, min(first_row + config::block_m, num_rows));
}

__device__ __forceinline__ void process(SharedStorage& shared,
                                        const PagedDecodeArguments& arguments, const Work& work,
                                        const Position& thread, int piece) {
  Accumulators sums;
  reset(sums);
  load_queries(shared, arguments, work);
#pragma unroll
  for (int stage = 0; stage < config::num_stages - 1; ++stage) {
    find_pages(shared, arguments, work, work.first_block + stage);
    __syncthreads();  // pages of this tile are written; those of the tile before last are read
    load_tiles(shared, arguments, work, work.first_block + stage);
  }
  find_pages(shared, arguments, work, work.first_block + config::num_stages - 1);

  for (int block = work.first_block; block < work.end_block; ++block) {
    // So would the addresses that follow from where a thread is.
    const Position at =
        is_short_of_registers ? position_of(opaque(thread.warp), opaque(thread.lane)) : thread;
    const Element* k = shared.kv[(block - work.first_block) % config::num_stages];
    const Element* v = value_is_prefix ? k : k + config::block_n * pitch_qk;
    wait_for_copies<config::num_stages - 2>();
    __syncthreads();  // this tile has arrived for all; the tile before it is no longer read
    load_tiles(shared, arguments, work, block + config::num_stages - 1);
    find_pages(shared, arguments, work, block + config::num_stages);
    Scores scores;
    compute_scores(shared, k, at, scores);
    mask_scores(arguments, work, at, block, scores);
    store_row_maxima(shared, at, scores);
    __syncthreads();  // every warp's maxima are written
    update_softmax(shared, at, scores, sums);
    rescale_output(shared, at, sums);
    __syncthreads();  // all probabilities are written; the maxima are no longer read
    accumulate_output(shared, v, at, sums);
  }
  store_row_sums(shared, thread, sums);
  wait_for_copies<0>();
  __syncthreads();  // every warp's sums are written; tiles, queries and pages are no longer read
  store_output(shared, arguments, work, thread, sums, piece);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(num_threads, 1)
    paged_decode_sm80(const __grid_constant__ PagedDecodeArguments arguments) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  SharedStorage& shared = *reinterpret_cast<SharedStorage*>(shared_bytes);
  const Position at = position_of(threadIdx.x / 32, threadIdx.x % 32);
  const int num_rows = arguments.seqlen_q * config::q_per_kv;

  clear_padding<padded_qk - config::head_dim_qk>(shared);
  RangeIndex index = first_index(arguments.parts[blockIdx.z]);
  while (true) {
    // Read again per range: kept over the main loop, it would push accumulators out of registers.
    const SchedulePart part = arguments.parts[blockIdx.z];
    // Not end_request_of: it takes a register more over the loop, and there is none left on sm_100.
    if (index.request > part.end_request)
      break;
    if (index.request == part.end_request && part.end_block == 0)
      break;
    const DecodeRange range =
        decode_range(part, index, arguments.seq_lens, arguments.piece_offsets,
                     queries_of_tile(blockIdx.x, num_rows), arguments.seqlen_q, config::block_n);
    Work work;
    work.request = range.request;
    work.kv_head = blockIdx.y;
    work.seqlen_kv = range.seqlen_kv;
    work.first_row = blockIdx.x * config::block_m;
    work.num_rows = num_rows;
    work.first_block = range.first_block;
    work.end_block = range.end_block;
    process(shared, arguments, work, at, range.piece);
    index = index_after(range);
  }
}
