// A thread block of kernels/paged_decode_sm80.cu: the sizes that follow from its config, its shared
// memory, its share of the work and what a thread keeps in registers.
#pragma once

#include "kernel_config.cuh"

#include "device/numeric_types.cuh"
#include "device/paged_tile.cuh"

constexpr int num_threads = config::num_warps * 32;
constexpr bool value_is_prefix = config::value_source == ValueSource::prefix_of_k;

// Columns that the score product runs over, zero beyond head_dim_qk: two k16 steps at a time.
constexpr int padded_qk = (config::head_dim_qk + 31) / 32 * 32;
constexpr int pitch_qk = odd_pitch(padded_qk);
constexpr int pitch_v = value_is_prefix ? pitch_qk : odd_pitch(config::head_dim_v);
constexpr int pitch_p = odd_pitch(config::block_n);
constexpr int stage_elements = config::block_n * (pitch_qk + (value_is_prefix ? 0 : pitch_v));

constexpr int row_tiles = config::block_m / 16;  // m16 tiles of a block
constexpr int wanted_warps_m = config::num_warps * 16 / config::block_n;
constexpr int warps_m = wanted_warps_m < 1           ? 1
                        : wanted_warps_m < row_tiles ? wanted_warps_m
                                                     : row_tiles;
constexpr int warps_n = config::num_warps / warps_m;
constexpr int score_row_tiles = row_tiles / warps_m;            // m16 tiles of a warp's scores
constexpr int score_key_tiles = config::block_n / 8 / warps_n;  // n8 tiles of a warp's scores
constexpr int value_tiles = config::head_dim_v / 8;             // n8 tiles of the output
constexpr int warp_value_tiles =
    (value_tiles + config::num_warps - 1) / config::num_warps;  // of a warp's output

static_assert(warps_m * warps_n == config::num_warps, "num_warps must be a power of two");
static_assert(score_row_tiles * warps_m == row_tiles, "block_m must be 16 times a power of two");
static_assert(score_key_tiles >= 1 && score_key_tiles * 8 * warps_n == config::block_n,
              "block_n must give every warp whole n8 tiles");
static_assert(config::block_n % 32 == 0, "V is multiplied 32 keys at a time");
static_assert(config::head_dim_v % 8 == 0, "V is multiplied 8 columns at a time");

struct SharedStorage {
  alignas(16) Element q[config::block_m * pitch_qk];
  alignas(16) Element kv[config::num_stages][stage_elements];  // K tile, then V tile if separate
  alignas(16) Element p[config::block_m * pitch_p];
  float row_parts[config::num_warps][config::block_m];  // maxima of a tile, then sums
  int pages[2][config::block_n];                        // of the tile being loaded and the next
};
static_assert(sizeof(SharedStorage) == config::shared_memory_bytes,
              "the host's shared-memory plan differs from SharedStorage");

// One request as one part sees it.
struct Work {
  int request;
  int kv_head;
  int seqlen_kv;
  int first_row;  // of this block's row tile
  int num_rows;   // seqlen_q * q_per_kv
  int first_block;
  int end_block;
};

// A thread's slice of the running softmax and output.
struct Accumulators {
  float out[row_tiles][warp_value_tiles][4];
  float row_max[row_tiles][2];          // of the rows of `out`, in units of log2
  float score_max[score_row_tiles][2];  // of the rows of this warp's scores
  float score_sum[score_row_tiles][2];  // over this thread's columns only
};

struct Position {
  int warp;
  int lane;
  int warp_m;  // row of this warp in the grid of warps that computes scores
  int warp_n;
};

__device__ __forceinline__ Position position_of(int warp, int lane) {
  return {warp, lane, warp / warps_n, warp % warps_n};
}
