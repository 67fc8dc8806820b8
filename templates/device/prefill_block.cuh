// A thread block of kernels/prefill_sm80.cu: the sizes that follow from its config, its shared
// memory, and what a thread keeps in registers.
#pragma once

#include "kernel_config.cuh"

#include "device/numeric_types.cuh"
#include "device/paged_tile.cuh"

constexpr int round_up(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

constexpr int num_threads = config::num_warps * 32;
constexpr bool value_is_prefix = config::value_source == ValueSource::prefix_of_k;

// Columns that the products run over: zero beyond head_dim_qk, not stored beyond head_dim_v.
constexpr int padded_qk = round_up(config::head_dim_qk, 16);
constexpr int padded_v = round_up(config::head_dim_v, 16 * config::column_warps);
constexpr int pitch_qk = odd_pitch(value_is_prefix && padded_v > padded_qk ? padded_v : padded_qk);
constexpr int pitch_v = value_is_prefix ? pitch_qk : odd_pitch(padded_v);
constexpr int pitch_out = odd_pitch(padded_v);

// Warps share the rows of a block; `column_warps` of them have the same rows, compute the same
// scores, and share the columns of the output.
constexpr int row_warps = config::num_warps / config::column_warps;
constexpr int warp_rows = config::block_m / row_warps;
constexpr int warp_columns = padded_v / config::column_warps;
constexpr int row_tiles = warp_rows / 16;       // m16 tiles of a warp
constexpr int key_tiles = config::block_n / 8;  // n8 tiles of its scores
constexpr int value_tiles = warp_columns / 8;   // n8 tiles of its output

static_assert(row_warps * config::column_warps == config::num_warps, "warps in equal shares");
static_assert(row_tiles * 16 * row_warps == config::block_m, "whole m16 tiles to a warp");
static_assert(config::block_n % 16 == 0, "keys are multiplied 16 at a time");
static_assert(warp_columns % 16 == 0, "columns of V are loaded 16 at a time");

// K and V of a tile have a buffer each, one filled while the other is used; a tile that is both
// has two.
constexpr int key_elements = config::block_n * pitch_qk;
constexpr int first_key_element = config::block_m * pitch_qk;
constexpr int first_value_element = first_key_element + key_elements;
constexpr int tile_elements =
    first_value_element + config::block_n * (value_is_prefix ? pitch_qk : pitch_v);
constexpr int out_elements = config::block_m * pitch_out;

using Scores = float[row_tiles][key_tiles][4];

// Keys [16 * step, 16 * step + 16) of each m16 tile as the first operand of a product.
using Probabilities = unsigned[config::block_n / 16][row_tiles][4];

// A thread's slice of the running softmax and output: rows lane / 4 and lane / 4 + 8 of each m16
// tile.
struct Accumulators {
  float out[row_tiles][value_tiles][4];
  float row_max[row_tiles][2];  // in units of log2
  float row_sum[row_tiles][2];  // over this thread's keys only
};

struct Position {
  int lane;
  int first_row;     // of this warp, in the thread block
  int first_column;  // of this warp's output
};
