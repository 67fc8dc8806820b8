// How the partial results of split requests lie in memory: as the attention kernel holds them in
// registers, so that whole lines of 128 values are stored and loaded, four to a lane. A kv head's
// rows are cut into tiles; a tile is a row of lines. The attention kernel writes at least the lines
// that hold rows of the call, and their states. What else is there may be read, and is never
// stored.
#pragma once

#include "device/config_types.cuh"
#include "interface/paged_decode_arguments.h"

using attnjit::kernel_interface::line_values;
using attnjit::kernel_interface::lines_of_tile;

// The tile's index among all of them. Its rows' states follow each other likewise.
__device__ __forceinline__ long long tile_index(
    const attnjit::kernel_interface::PartialResults& partial, int num_kv_heads, int piece,
    int kv_head, int tile) {
  return (static_cast<long long>(piece) * num_kv_heads + kv_head) * partial.tiles + tile;
}

// Where this lane's four values of a line belong: value i to row row_of_value(i) of these, and
// column_of_value(i) columns on.
struct LinePlace {
  int row[2];
  int column;
};

template <PartialOrder order>
__device__ constexpr int row_of_value(int i) {
  return order == PartialOrder::rows ? 0 : order == PartialOrder::accumulators ? i / 2 : i % 2;
}

template <PartialOrder order>
__device__ constexpr int column_of_value(int i) {
  return order == PartialOrder::rows ? i : order == PartialOrder::accumulators ? i % 2 : i / 2 * 8;
}

// Where a row's state is among those of its tile: so that a lane's two rows are neighbours, the
// first at an even place.
template <PartialOrder order>
__device__ constexpr int state_place(int row) {
  return order == PartialOrder::accumulators ? row / 16 * 16 + row % 8 * 2 + row / 8 % 2 : row;
}

// Lines that hold further columns of the same rows are so many apart, and their columns.
template <PartialOrder order>
constexpr int line_step = order == PartialOrder::accumulators ? 4 : 1;
template <PartialOrder order>
constexpr int column_step = order == PartialOrder::rows           ? line_values
                            : order == PartialOrder::accumulators ? 8
                                                                  : 16;

// rows: a tile is one row; four columns in a row.
// accumulators: 64 rows, lines count warps of 16 rows first, then eight columns; two columns of
// rows lane / 4 and 8 further, as wgmma and mma hold a tile of 16 by 8.
// transposed: the same of the transposed result, lines count warps of 16 columns, then eight rows,
// then 64 columns; columns lane / 4 and 8 further, two rows each.
template <PartialOrder order, int tile_rows>
__device__ __forceinline__ LinePlace place_in_line(int line, int lane) {
  LinePlace place = {};
  const int warp = line % 4;
  if constexpr (order == PartialOrder::rows) {
    place.column = line * line_values + lane * 4;
  } else if constexpr (order == PartialOrder::accumulators) {
    place.row[0] = warp * 16 + lane / 4;
    place.row[1] = place.row[0] + 8;
    place.column = line / 4 * 8 + lane % 4 * 2;
  } else {
    constexpr int row_tiles = tile_rows / 8;
    place.row[0] = line / 4 % row_tiles * 8 + lane % 4 * 2;
    place.row[1] = place.row[0] + 1;
    place.column = line / 4 / row_tiles * 64 + warp * 16 + lane / 4;
  }
  return place;
}
