// Attention of many query tokens per request with mma.sync and cp.async: ragged, dense or paged
// keys, any head ratio, every mask. Grid: x = row tiles of all requests, y = kv heads, z = parts of
// their keys.
//
// The seqlen_q * q_per_kv query rows that share a kv head are packed, query-major, into tiles of
// block_m rows. A warp has whole rows: scores, probabilities and output of a row stay in its
// registers. Keys and values of a tile have one buffer each, and each is copied while the other is
// multiplied.
#include "kernel_config.cuh"

#include "device/async_copy.cuh"
#include "device/attention_sink.cuh"
#include "device/opaque_value.cuh"
#include "device/output_element.cuh"
#include "device/prefill_block.cuh"
#include "device/prefill_mask.cuh"
#include "device/prefill_products.cuh"
#include "device/prefill_softmax.cuh"
#include "device/prefill_splits.cuh"
#include "device/prefill_tiles.cuh"
#include "device/prefill_work.cuh"
#include "device/score_modifier.cuh"
#include "device/softmax_math.cuh"
#include "interface/prefill_arguments.h"

using namespace attnjit::kernel_interface;

namespace {

// Products to scores, which are -inf where a row does not see a key.
template <bool is_full>
__device__ __forceinline__ void finish_scores(const PrefillArguments& arguments,
                                              const SharedStorage& shared, const Position& at,
                                              int tile, int buffer, Scores& scores) {
  const PrefillWork& work = shared.work;
  const float scale = score_scale(arguments, shared);
  const int tile_key = at.lane % 4 * 2;
  const int first_key = tile * config::block_n + tile_key;
  // Over the main loop, what each row sees would take registers that there are not.
  const int first_row = opaque(work.first_row + at.first_row + at.lane / 4);
#pragma unroll
  for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + i * 16 + half * 8;
      const RowModifier modifier = row_modifier(arguments, work, row);
      const float own_scale = row_scale(shared, row - work.first_row);
      RowMask view = {};
      if constexpr (!is_full)
        view = row_mask(arguments, work, row);
#pragma unroll
      for (int j = 0; j < key_tiles; ++j) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const int key = first_key + j * 8 + c;
          float& score = scores[i][j][half * 2 + c];
          if constexpr (has_row_scales || has_key_scales)
            score *= own_scale * key_scale(shared, buffer, tile_key + j * 8 + c);
          score = modified_score(arguments, work, modifier, scale, key, score);
          if constexpr (!is_full)
            score = masked_score(arguments, work, view, key, score);
        }
      }
    }
  }
}

// A key that no query sees may have any scale.
__device__ __forceinline__ float scaled_probability(float probability, float scale) {
  return probability == 0.0f ? 0.0f : probability * scale;
}

// Probabilities times the scales of their values, whose codes they are multiplied with.
__device__ __forceinline__ void scale_probabilities(const SharedScales& scales, int buffer,
                                                    const Position& at, Scores& scores) {
#pragma unroll
  for (int j = 0; j < key_tiles; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const float scale = value_scale(scales, buffer, j * 8 + at.lane % 4 * 2 + c);
#pragma unroll
      for (int i = 0; i < row_tiles; ++i) {
        scores[i][j][c] = scaled_probability(scores[i][j][c], scale);
        scores[i][j][2 + c] = scaled_probability(scores[i][j][2 + c], scale);
      }
    }
  }
}

__device__ __forceinline__ void compute_probabilities(const PrefillArguments& arguments,
                                                      const SharedStorage& shared, const Element* k,
                                                      const Position& at, const FoundTile& tile,
                                                      int buffer, Accumulators& sums,
                                                      Probabilities& probabilities) {
  Scores scores;
  compute_scores(shared.elements, k, at, scores);
  if (tile.is_full)
    finish_scores<true>(arguments, shared, at, tile.index, buffer, scores);
  else
    finish_scores<false>(arguments, shared, at, tile.index, buffer, scores);
  update_softmax(scores, softmax_factor(score_scale(arguments, shared)), sums);
  if constexpr (has_key_scales)
    scale_probabilities(shared, buffer, at, scores);
  pack_probabilities(scores, probabilities);
}

// Divides by the sums, rounds, and puts the rows of this warp into shared memory; writes their LSE.
__device__ __forceinline__ void finish_rows(SharedStorage& shared,
                                            const PrefillArguments& arguments,
                                            const PrefillWork& work, const Position& at,
                                            const Accumulators& sums) {
#pragma unroll
  for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int tile_row = at.first_row + i * 16 + at.lane / 4 + half * 8;
      const int row = work.first_row + tile_row;
      const float sum = row_total(sums.row_sum[i][half]);
      const float maximum = sums.row_max[i][half];
      const bool sees_nothing = sum == 0.0f;
      const bool is_row = row < work.num_rows;
      const float sink =
          is_row ? load_sink<config::has_sinks>(arguments.sinks, head_of(work, row)) : 0.0f;
      const float scale =
          sees_nothing
              ? 0.0f
              : reciprocal_approximate(denominator<config::has_sinks>(sink, maximum, sum)) *
                    output_scale(arguments, shared);
      Output* out = reinterpret_cast<Output*>(shared.elements) + tile_row * pitch_out +
                    at.first_column + at.lane % 4 * 2;
#pragma unroll
      for (int j = 0; j < value_tiles; ++j)
        store_pair(out + j * 8, sums.out[i][j][half * 2] * scale,
                   sums.out[i][j][half * 2 + 1] * scale);
      if (is_row && at.first_column == 0 && at.lane % 4 == 0 && arguments.lse != nullptr) {
        arguments.lse[row_offset(arguments.lse_strides, work, row)] =
            sees_nothing ? negative_infinity() : (maximum + log2_approximate(sum)) * ln_2;
      }
    }
  }
}

// What kernels/combine_prefill.cu merges, in place of finished rows.
__device__ __forceinline__ void store_partial(const SharedStorage& shared,
                                              const PrefillArguments& arguments, const Position& at,
                                              const Accumulators& sums) {
  const PrefillWork& work = shared.work;
  const float scale = value_block_scale(shared);
#pragma unroll
  for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = work.first_row + at.first_row + i * 16 + at.lane / 4 + half * 8;
      const float sum = row_total(sums.row_sum[i][half]);
      if (row >= work.num_rows)
        continue;
      const long long place = partial_row(arguments, work, row, static_cast<int>(blockIdx.z));
      float* out = arguments.partial_out + place * config::head_dim_v;
#pragma unroll
      for (int j = 0; j < value_tiles; ++j) {
        const int column = at.first_column + j * 8 + at.lane % 4 * 2;
        if (padded_v == config::head_dim_v || column < config::head_dim_v)
          *reinterpret_cast<float2*>(out + column) =
              make_float2(sums.out[i][j][half * 2] * scale, sums.out[i][j][half * 2 + 1] * scale);
      }
      if (at.first_column == 0 && at.lane % 4 == 0)
        arguments.partial_states[place] = {sums.row_max[i][half], sum};
    }
  }
}

__device__ __forceinline__ void store_output(const SharedStorage& shared,
                                             const PrefillArguments& arguments,
                                             const PrefillWork& work) {
  constexpr int chunks = config::head_dim_v / 8;
#pragma unroll 4
  for (int i = threadIdx.x; i < config::block_m * chunks; i += num_threads) {
    const int row = work.first_row + i / chunks;
    const int column = i % chunks * 8;
    if (row < work.num_rows) {
      *reinterpret_cast<OutputChunk*>(static_cast<Output*>(arguments.out) +
                                      row_offset(arguments.out_strides, work, row) + column) =
          *reinterpret_cast<const OutputChunk*>(reinterpret_cast<const Output*>(shared.elements) +
                                                i / chunks * pitch_out + column);
    }
  }
}

// K and V are tensors of their own.
__device__ __forceinline__ void process_tiles(SharedStorage& shared,
                                              const PrefillArguments& arguments, const Position& at,
                                              Accumulators& sums) {
  const PrefillWork& work = shared.work;
  const VisibleTiles& tiles = shared.tiles;
  Element* k = shared.elements + first_key_element;
  Element* v = shared.elements + first_value_element;
  TileWalk walk;
  FoundTile tile = walk.find(arguments, work, tiles, tiles.first_tile);
  if (tile.index < tiles.end_tile)
    copy_keys(k, arguments, shared, tile.index, 0);
  commit_copies();
  while (tile.index < tiles.end_tile) {
    wait_for_copies<0>();
    convert_keys(k, arguments, shared, tile.index);
    __syncthreads();  // this tile's keys have arrived for all; the values before are no longer read
    copy_values(v, arguments, shared, tile.index);
    commit_copies();
    Probabilities probabilities;
    compute_probabilities(arguments, shared, k, at, tile, 0, sums, probabilities);
    const int values_tile = tile.index;
    tile = walk.find(arguments, work, tiles, tile.index + 1);
    wait_for_copies<0>();
    convert_values(v, arguments, shared, values_tile);
    __syncthreads();  // the values have arrived for all; the keys are no longer read
    if (tile.index < tiles.end_tile)
      copy_keys(k, arguments, shared, tile.index, 0);
    commit_copies();
    accumulate_output(v, at, probabilities, sums);
  }
}

// V lies in the rows of K: a tile is copied once, while the one before is used.
__device__ __forceinline__ void process_shared_tiles(SharedStorage& shared,
                                                     const PrefillArguments& arguments,
                                                     const Position& at, Accumulators& sums) {
  const PrefillWork& work = shared.work;
  const VisibleTiles& tiles = shared.tiles;
  TileWalk walk;
  FoundTile tile = walk.find(arguments, work, tiles, tiles.first_tile);
  int buffer = 0;
  if (tile.index < tiles.end_tile)
    copy_keys(shared.elements + first_key_element, arguments, shared, tile.index, 0);
  commit_copies();
  while (tile.index < tiles.end_tile) {
    const FoundTile next = walk.find(arguments, work, tiles, tile.index + 1);
    Element* k = shared.elements + first_key_element + buffer * key_elements;
    wait_for_copies<0>();
    convert_keys(k, arguments, shared, tile.index);
    __syncthreads();  // this tile has arrived for all; the one before is no longer read
    if (next.index < tiles.end_tile) {
      copy_keys(shared.elements + first_key_element + (buffer ^ 1) * key_elements, arguments,
                shared, next.index, buffer ^ 1);
    }
    commit_copies();
    Probabilities probabilities;
    compute_probabilities(arguments, shared, k, at, tile, buffer, sums, probabilities);
    accumulate_output(k, at, probabilities, sums);
    tile = next;
    buffer ^= 1;
  }
}

// With these the assembler would spill to have room for more thread blocks than one.
constexpr bool converts =
    is_fp8<config::dtype_q> || is_fp8<config::dtype_kv> || is_fp8<config::dtype_rope>;
constexpr int least_blocks = has_blocks || mask_is_additive || converts ? 1 : 0;

}  // namespace

extern "C" __global__ void __launch_bounds__(num_threads, least_blocks)
    prefill_sm80(const __grid_constant__ PrefillArguments arguments) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  SharedStorage& shared = *reinterpret_cast<SharedStorage*>(shared_bytes);
  // The last rows see the most keys under a causal mask: they begin first.
  const PrefillWork found =
      find_work(arguments, static_cast<int>(gridDim.x - 1 - blockIdx.x), blockIdx.y);
  if (found.first_row < 0 || found.first_row >= found.num_rows)
    return;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const Position at = {static_cast<int>(threadIdx.x % 32), warp % row_warps * warp_rows,
                       warp / row_warps * warp_columns};
  VisibleTiles tiles = find_visible_tiles(arguments, found);
  if (arguments.num_splits > 1)
    take_part(tiles, arguments.num_splits, static_cast<int>(blockIdx.z));
  if (threadIdx.x == 0) {
    shared.work = found;
    shared.tiles = tiles;
    set_block_scales(shared, arguments, found);
  }
  set_row_scales(shared, arguments, found);
  clear_padding<padded_qk - config::head_dim_qk>(shared);
  copy_queries(shared, arguments, found);
  __syncthreads();  // work and tiles are written
  Accumulators sums;
  reset(sums);
  if constexpr (value_is_prefix)
    process_shared_tiles(shared, arguments, at, sums);
  else
    process_tiles(shared, arguments, at, sums);
  wait_for_copies<0>();
  if (arguments.num_splits > 1) {
    store_partial(shared, arguments, at, sums);
    return;
  }
  __syncthreads();  // no copy is under way; queries, keys and values are no longer read
  finish_rows(shared, arguments, shared.work, at, sums);
  __syncthreads();  // all rows are in shared memory
  store_output(shared, arguments, shared.work);
}
