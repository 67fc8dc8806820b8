// What the combine kernel merges: lines of the pieces of a request, and where a lane finds its
// values and its rows' states.
#pragma once

#include "kernel_config.cuh"

#include "device/attention_sink.cuh"
#include "device/numeric_types.cuh"
#include "device/partial_results.cuh"
#include "device/softmax_math.cuh"
#include "device/warp_uniform.cuh"
#include "interface/paged_decode_arguments.h"

using namespace attnjit::kernel_interface;

constexpr PartialOrder order = config::partial_order;
constexpr int lines = lines_of_tile(config::partial_rows, config::head_dim_v);  // of a tile
constexpr int groups = config::partial_rows / group_rows<order>;                // of a tile
constexpr int lines_per_group = lines / groups;
constexpr int num_rows = order == PartialOrder::rows ? 1 : 2;  // that a lane has values of

// Where few requests are split into many pieces, a warp takes one line; where many are split into
// few, two or four lines of the same rows, so that enough loads are under way either way.
constexpr int most_lines_at_once = lines_per_group % 4 == 0 ? 4 : lines_per_group % 2 == 0 ? 2 : 1;

// A row of the output that this lane has values of; out is null where the tile is only filled up.
struct RowPlace {
  Element* out;
  float* lse;  // null if not wanted
  float sink;  // in units of log2
};

// A row group of one request's results; where they are in its first piece.
struct Rows {
  int num_pieces;
  RowPlace places[2];
  const Element* lines;
  const PartialState* states;  // of the lane's rows
  long long tile_stride;       // tiles between pieces
};

__device__ __forceinline__ RowPlace find_row(const CombineArguments& arguments, int request,
                                             int kv_head, int row) {
  if (row >= arguments.seqlen_q * arguments.q_per_kv)
    return {};
  const int query = arguments.seqlen_q == 1 ? 0 : row / arguments.q_per_kv;
  const int head = kv_head * arguments.q_per_kv + row - query * arguments.q_per_kv;
  RowPlace place = {};
  place.out = static_cast<Element*>(arguments.out) + request * arguments.out_strides.batch +
              query * arguments.out_strides.token + head * arguments.out_strides.head;
  place.sink = load_sink<config::has_sinks>(arguments.sinks, head);
  if (arguments.lse != nullptr) {
    place.lse = arguments.lse + request * arguments.lse_strides.batch +
                query * arguments.lse_strides.token + head * arguments.lse_strides.head;
  }
  return place;
}

// `index` counts the row groups of all requests.
__device__ __forceinline__ Rows find_rows(const CombineArguments& arguments, unsigned index,
                                          int lane) {
  const unsigned tile = index / groups;
  const unsigned per_request = arguments.num_kv_heads * arguments.partial.tiles;
  const unsigned request = per_request == 1 ? tile : tile / per_request;
  const unsigned tile_of_request = tile - request * per_request;
  const unsigned kv_head =
      arguments.num_kv_heads == 1 ? 0 : tile_of_request / arguments.partial.tiles;
  const unsigned row_tile = tile_of_request - kv_head * arguments.partial.tiles;
  const int first_piece = arguments.piece_offsets[request];
  Rows rows;
  rows.num_pieces = warp_uniform(arguments.piece_offsets[request + 1] - first_piece);
  const int group = index % groups;
  const LinePlace place = place_in_line<order>(0, lane);
#pragma unroll
  for (int i = 0; i < num_rows; ++i) {
    const int row = row_tile * config::partial_rows + group * group_rows<order> + place.row[i];
    rows.places[i] = find_row(arguments, request, kv_head, row);
  }
  const long long first_group =
      tile_index(arguments.partial, arguments.num_kv_heads, first_piece, kv_head, row_tile) *
          groups +
      group;
  rows.lines = arguments.partial.out + first_group * lines_per_group * line_values;
  rows.states =
      arguments.partial.states + first_group * group_rows<order> + state_place<order>(place.row[0]);
  rows.tile_stride = per_request;
  return rows;
}

// Some lines of a row group that follow each other.
struct Line {
  int column;             // of this lane's first value
  const Element* values;  // this lane's, in the first piece
};

__device__ __forceinline__ Line find_line(const Rows& rows, int line_of_group, int lane) {
  return {place_in_line<order>(line_of_group, lane).column,
          rows.lines + line_of_group * line_values + lane * 4};
}

// One warp's share of a line's pieces: `first`, and every 2^bits-th on. The other shares are those
// of its neighbours.
struct LineShare {
  int first;
  int bits;
};

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

// What a line's warps come to, for the first to merge.
struct WarpResults {
  float4 values[config::num_warps][32];
  float4 states[config::num_warps][32];  // maxima, sums
};
