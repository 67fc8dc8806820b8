// What the combine kernel merges: lines of the pieces of a request, and where a lane finds its
// values and its rows' states.
#pragma once

#include "kernel_config.cuh"

#include "device/attention_sink.cuh"
#include "device/partial_results.cuh"
#include "device/partial_values.cuh"
#include "device/softmax_math.cuh"
#include "interface/paged_decode_arguments.h"

using namespace attnjit::kernel_interface;

constexpr PartialOrder order = config::partial_order;
constexpr int lines = lines_of_tile(config::partial_rows, config::head_dim_v);  // of a tile

// Where few requests are split into many pieces, a warp takes one line; where many are split into
// few, four lines of the same rows, so that enough loads are under way either way.
constexpr int most_lines_at_once = lines % (4 * line_step<order>) == 0 ? 4 : 1;

template <int lines_at_once>
constexpr int pieces_in_flight = lines_at_once == 1 ? 4 : 2;

// A row of the output that this lane has values of; out is null where the tile is only filled up.
struct RowPlace {
  Element* out;
  float* lse;  // null if not wanted, or another lane's
  float sink;  // in units of log2
};

// Lines of one request's results, and where this lane's values are in its first piece.
struct Line {
  int num_pieces;
  int column;  // of the first value, in the first line
  RowPlace rows[2];
  const Element* values;
  const PartialState* states;  // of the lane's rows
  long long tile_stride;       // tiles between pieces
};

__device__ __forceinline__ RowPlace find_row(const CombineArguments& arguments, int request,
                                             int kv_head, int row, int column) {
  if (row >= arguments.seqlen_q * arguments.q_per_kv)
    return {};
  const int query = row / arguments.q_per_kv;
  const int head = kv_head * arguments.q_per_kv + row % arguments.q_per_kv;
  RowPlace place = {};
  place.out = static_cast<Element*>(arguments.out) + request * arguments.out_strides.batch +
              query * arguments.out_strides.token + head * arguments.out_strides.head + column;
  place.sink = load_sink<config::has_sinks>(arguments.sinks, head);
  if (column == 0 && arguments.lse != nullptr) {
    place.lse = arguments.lse + request * arguments.lse_strides.batch +
                query * arguments.lse_strides.token + head * arguments.lse_strides.head;
  }
  return place;
}

// `index` counts the lines of all requests, or groups of lines_at_once.
template <int lines_at_once>
__device__ __forceinline__ Line find_line(const CombineArguments& arguments, unsigned index,
                                          int lane) {
  constexpr unsigned groups = lines / lines_at_once;
  const unsigned tile = index / groups;
  const unsigned group = index % groups;
  const int line_in_tile =
      group / line_step<order> * line_step<order> * lines_at_once + group % line_step<order>;
  const unsigned per_request = arguments.num_kv_heads * arguments.partial.tiles;
  const int request = tile / per_request;
  const int kv_head = tile % per_request / arguments.partial.tiles;
  const int row_tile = tile % per_request % arguments.partial.tiles;
  const LinePlace place = place_in_line<order, config::partial_rows>(line_in_tile, lane);
  Line line;
  const int first_piece = arguments.piece_offsets[request];
  line.num_pieces = arguments.piece_offsets[request + 1] - first_piece;
  line.column = place.column;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    line.rows[i] = find_row(arguments, request, kv_head,
                            row_tile * config::partial_rows + place.row[i], place.column);
  }
  const long long first_tile =
      tile_index(arguments.partial, arguments.num_kv_heads, first_piece, kv_head, row_tile);
  line.values =
      arguments.partial.out + (first_tile * lines + line_in_tile) * line_values + lane * 4;
  line.states = arguments.partial.states + first_tile * config::partial_rows +
                state_place<order>(place.row[0]);
  line.tile_stride = per_request;
  return line;
}

// What pieces come to: of each row the largest maximum and the sum relative to it, of each value
// the sum weighted likewise.
template <int lines_at_once>
struct Merged {
  float maximum[2];
  float sum[2];
  float4 values[lines_at_once];
};

template <int lines_at_once>
__device__ __forceinline__ void reset(Merged<lines_at_once>& merged) {
  merged.maximum[0] = merged.maximum[1] = negative_infinity();
  merged.sum[0] = merged.sum[1] = 0.0f;
#pragma unroll
  for (int i = 0; i < lines_at_once; ++i)
    merged.values[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

__device__ __forceinline__ float weight_of(float own_maximum, float maximum) {
  return exp2_approximate(own_maximum - finite_maximum(maximum));
}

// Some of a warp's pieces, all loads under way together; what is past the last weighs nothing.
template <int lines_at_once>
struct LoadedPieces {
  PartialState states[pieces_in_flight<lines_at_once>][2];
  uint2 values[pieces_in_flight<lines_at_once>][lines_at_once];
};

// Of both rows of a lane, which are the same where a tile has one.
__device__ __forceinline__ void load_states(const PartialState* place, PartialState (&states)[2]) {
  if constexpr (order == PartialOrder::rows) {
    states[0] = states[1] = *place;
  } else {
    const float4 both = *reinterpret_cast<const float4*>(place);
    states[0] = {both.x, both.y};
    states[1] = {both.z, both.w};
  }
}

template <int lines_at_once>
__device__ __forceinline__ void load_pieces(const Line& line, int first, int step,
                                            LoadedPieces<lines_at_once>& pieces) {
#pragma unroll
  for (int i = 0; i < pieces_in_flight<lines_at_once>; ++i) {
    const int piece = first + i * step;
    const bool exists = piece < line.num_pieces;
    const long long tiles = piece * line.tile_stride;
    pieces.states[i][0] = pieces.states[i][1] = {negative_infinity(), 0.0f};
    if (exists)
      load_states(line.states + tiles * config::partial_rows, pieces.states[i]);
    const Element* values = line.values + tiles * lines * line_values;
#pragma unroll
    for (int j = 0; j < lines_at_once; ++j) {
      pieces.values[i][j] =
          exists ? *reinterpret_cast<const uint2*>(values + j * line_step<order> * line_values)
                 : make_uint2(0, 0);
    }
  }
}

// Line `j` of piece `i`, as the attention kernel had it.
template <int lines_at_once>
__device__ __forceinline__ float4 values_of(const LoadedPieces<lines_at_once>& pieces, int i,
                                            int j) {
  const float factor[2] = {restored_factor<config::dtype>(pieces.states[i][0].sum),
                           restored_factor<config::dtype>(pieces.states[i][1].sum)};
  float4 values = unpack_values<config::dtype>(pieces.values[i][j]);
  values.x *= factor[row_of_value<order>(0)];
  values.y *= factor[row_of_value<order>(1)];
  values.z *= factor[row_of_value<order>(2)];
  values.w *= factor[row_of_value<order>(3)];
  return values;
}
