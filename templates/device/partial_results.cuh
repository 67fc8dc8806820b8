// How the partial results of split requests lie in memory: as the attention kernel holds them in
// registers, so that whole lines of 128 values are stored and loaded, four to a lane. A kv head's
// rows are cut into tiles, a tile into row groups, whose lines follow each other in columns. The
// attention kernel writes at least the lines that hold rows of the call, and their states. What
// else is there may be read, and is never stored.
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

// Rows of a group, all of which each of its lines has.
template <PartialOrder order>
constexpr int group_rows = order == PartialOrder::rows           ? 1
                           : order == PartialOrder::accumulators ? 16
                                                                 : 8;

// A line's columns.
template <PartialOrder order>
constexpr int line_columns = line_values / group_rows<order>;

// Where this lane's four values of a line belong: value i to row row_of_value(i) of these, and
// column_of_value(i) columns on.
struct LinePlace {
  int row[2];  // of the row group
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

// rows: one row, a lane has four columns in a row.
// accumulators: 16 rows, 8 columns as wgmma and mma hold them, two columns of rows lane / 4 and 8
// further.
// transposed: the same of the transposed result, 8 rows, 16 columns: columns lane / 4 and 8
// further, two rows each.
template <PartialOrder order>
__device__ constexpr LinePlace place_in_line(int line_of_group, int lane) {
  const int first_column = line_of_group * line_columns<order>;
  return order == PartialOrder::rows ? LinePlace{{0, 0}, first_column + lane * 4}
         : order == PartialOrder::accumulators
             ? LinePlace{{lane / 4, lane / 4 + 8}, first_column + lane % 4 * 2}
             : LinePlace{{lane % 4 * 2, lane % 4 * 2 + 1}, first_column + lane / 4};
}

// Where a row's state is among those of its group: so that a lane's two rows are neighbours, the
// first at an even place.
template <PartialOrder order>
__device__ constexpr int state_place(int row) {
  return order == PartialOrder::accumulators ? row % 8 * 2 + row / 8 : row;
}

// The lanes that hold values of the same rows of a line: so many, and their lane numbers so far
// apart.
template <PartialOrder order>
constexpr int lanes_of_row = order == PartialOrder::rows           ? 32
                             : order == PartialOrder::accumulators ? 4
                                                                   : 8;
template <PartialOrder order>
constexpr int rank_step = order == PartialOrder::transposed ? 4 : 1;

template <PartialOrder order>
__device__ constexpr int rank_in_row(int lane) {
  return lane / rank_step<order> % lanes_of_row<order>;
}

// The lane of that rank among those that have a lane's rows.
template <PartialOrder order>
__device__ constexpr int lane_of_rank(int lane, int rank) {
  return lane + (rank - rank_in_row<order>(lane)) * rank_step<order>;
}
