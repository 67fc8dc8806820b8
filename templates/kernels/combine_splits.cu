// Merges the partial results of split requests by their maxima and sums, line by line as they lie
// in memory; warps_per_line neighbouring warps share a line's pieces. Rows of requests that were
// not split are left alone, the attention kernel has written them. Grid: any; blocks take lines in
// turn.
#include "kernel_config.cuh"

#include "device/combine_launch.cuh"
#include "device/numeric_types.cuh"
#include "device/partial_results.cuh"
#include "device/softmax_math.cuh"
#include "interface/paged_decode_arguments.h"

using namespace attnjit::kernel_interface;

namespace {

constexpr PartialOrder order = config::partial_order;
constexpr int lines = lines_of_tile(config::partial_rows, config::head_dim_v);  // of a tile

// Where few requests are split into many pieces, a warp takes one line; where many are split into
// few, four lines of the same rows, so that enough loads are under way either way.
constexpr int most_lines_at_once = lines % (4 * line_step<order>) == 0 ? 4 : 1;

// Which pieces a warp merges, and with which others at a time, decides the last bits of a result:
// where these must not depend on the batch, the config says it.
constexpr bool has_fixed_order = config::warps_per_line > 0;

template <int lines_at_once>
constexpr int pieces_in_flight = lines_at_once == 1 ? 4 : 2;

// Lines of one request's results, and where this lane's values are in its first piece.
struct Line {
  int request;
  int num_pieces;
  int kv_head;
  int tile;
  LinePlace place;  // in the first of them
  const float* values;
  const PartialState* states;  // of the lane's rows
  long long tile_stride;       // tiles between pieces
};

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
  Line line;
  line.request = tile / per_request;
  line.kv_head = tile % per_request / arguments.partial.tiles;
  line.tile = tile % per_request % arguments.partial.tiles;
  const int first_piece = arguments.piece_offsets[line.request];
  line.num_pieces = arguments.piece_offsets[line.request + 1] - first_piece;
  line.place = place_in_line<order, config::partial_rows>(line_in_tile, lane);
  const long long first_tile =
      tile_index(arguments.partial, arguments.num_kv_heads, first_piece, line.kv_head, line.tile);
  line.values =
      arguments.partial.out + (first_tile * lines + line_in_tile) * line_values + lane * 4;
  line.states = arguments.partial.states + first_tile * config::partial_rows +
                state_place<order>(line.place.row[0]);
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

// A piece that saw nothing weighs nothing, and what it holds may be no number.
__device__ __forceinline__ float weighted(float weight, float value) {
  return weight == 0.0f ? 0.0f : weight * value;
}

__device__ __forceinline__ void add(float4& sum, const float (&weight)[2], const float4& values) {
  sum.x += weighted(weight[row_of_value<order>(0)], values.x);
  sum.y += weighted(weight[row_of_value<order>(1)], values.y);
  sum.z += weighted(weight[row_of_value<order>(2)], values.z);
  sum.w += weighted(weight[row_of_value<order>(3)], values.w);
}

__device__ __forceinline__ float weight_of(float own_maximum, float maximum) {
  return exp2_approximate(own_maximum - finite_maximum(maximum));
}

// Moves both rows to maxima that are at least as large.
template <int lines_at_once>
__device__ __forceinline__ void raise_maxima(Merged<lines_at_once>& merged,
                                             const float (&maximum)[2]) {
  float factor[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    factor[row] = weight_of(merged.maximum[row], maximum[row]);
    merged.maximum[row] = maximum[row];
    merged.sum[row] *= factor[row];
  }
#pragma unroll
  for (int i = 0; i < lines_at_once; ++i) {
    const float4 values = merged.values[i];
    merged.values[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    add(merged.values[i], factor, values);
  }
}

// Some of a warp's pieces, all loads under way together; what is past the last weighs nothing.
template <int lines_at_once>
struct LoadedPieces {
  PartialState states[pieces_in_flight<lines_at_once>][2];
  float4 values[pieces_in_flight<lines_at_once>][lines_at_once];
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
    const float* values = line.values + tiles * lines * line_values;
#pragma unroll
    for (int j = 0; j < lines_at_once; ++j) {
      pieces.values[i][j] =
          exists ? *reinterpret_cast<const float4*>(values + j * line_step<order> * line_values)
                 : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
  }
}

// This warp's pieces: `group`, `group` + warps_per_line, …
template <int lines_at_once>
__device__ __forceinline__ void merge_pieces(const Line& line, int group, int warps_per_line,
                                             Merged<lines_at_once>& merged) {
  constexpr int at_once = pieces_in_flight<lines_at_once>;
#pragma unroll 1
  for (int first = group; first < line.num_pieces; first += warps_per_line * at_once) {
    LoadedPieces<lines_at_once> pieces;
    load_pieces(line, first, warps_per_line, pieces);
    float maximum[2] = {merged.maximum[0], merged.maximum[1]};
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      maximum[0] = fmaxf(maximum[0], pieces.states[i][0].maximum);
      maximum[1] = fmaxf(maximum[1], pieces.states[i][1].maximum);
    }
    raise_maxima(merged, maximum);
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const float weight[2] = {weight_of(pieces.states[i][0].maximum, maximum[0]),
                               weight_of(pieces.states[i][1].maximum, maximum[1])};
      merged.sum[0] += weight[0] * pieces.states[i][0].sum;
      merged.sum[1] += weight[1] * pieces.states[i][1].sum;
#pragma unroll
      for (int j = 0; j < lines_at_once; ++j)
        add(merged.values[j], weight, pieces.values[i][j]);
    }
  }
}

// The results of a line's warps, in its first. All threads of the block.
__device__ __forceinline__ void merge_warps(int warps_per_line, int group, int lane,
                                            Merged<1>& merged) {
  __shared__ float4 values[config::num_warps][32];
  __shared__ float4 states[config::num_warps][32];  // maxima, sums
  const int warp = threadIdx.x / 32;
  __syncthreads();  // the results of the lines before are no longer read
  values[warp][lane] = merged.values[0];
  states[warp][lane] =
      make_float4(merged.maximum[0], merged.maximum[1], merged.sum[0], merged.sum[1]);
  __syncthreads();  // all results are written
  if (group > 0)
    return;
  float maximum[2] = {merged.maximum[0], merged.maximum[1]};
#pragma unroll 4
  for (int i = 1; i < warps_per_line; ++i) {
    const float2 other = *reinterpret_cast<const float2*>(&states[warp + i][lane]);
    maximum[0] = fmaxf(maximum[0], other.x);
    maximum[1] = fmaxf(maximum[1], other.y);
  }
  raise_maxima(merged, maximum);
#pragma unroll 4
  for (int i = 1; i < warps_per_line; ++i) {
    const float4 other = states[warp + i][lane];
    const float weight[2] = {weight_of(other.x, maximum[0]), weight_of(other.y, maximum[1])};
    merged.sum[0] += other.z * weight[0];
    merged.sum[1] += other.w * weight[1];
    add(merged.values[0], weight, values[warp + i][lane]);
  }
}

// One row's two or four values of a line.
__device__ __forceinline__ void store_values(Element* out, int row, const float4& values,
                                             float scale) {
  if constexpr (order == PartialOrder::rows) {
    *reinterpret_cast<uint2*>(out) =
        make_uint2(pack_pair<config::dtype>(values.x * scale, values.y * scale),
                   pack_pair<config::dtype>(values.z * scale, values.w * scale));
  } else if constexpr (order == PartialOrder::accumulators) {
    *reinterpret_cast<unsigned*>(out) =
        row == 0 ? pack_pair<config::dtype>(values.x * scale, values.y * scale)
                 : pack_pair<config::dtype>(values.z * scale, values.w * scale);
  } else {
    const unsigned pair = row == 0 ? pack_pair<config::dtype>(values.x * scale, values.z * scale)
                                   : pack_pair<config::dtype>(values.y * scale, values.w * scale);
    out[0] = static_cast<Element>(pair);
    out[8] = static_cast<Element>(pair >> 16);
  }
}

template <int lines_at_once>
__device__ __forceinline__ void store_line(const CombineArguments& arguments, const Line& line,
                                           const Merged<lines_at_once>& merged) {
  constexpr int num_rows = order == PartialOrder::rows ? 1 : 2;
#pragma unroll
  for (int i = 0; i < num_rows; ++i) {
    const int row = line.tile * config::partial_rows + line.place.row[i];
    if (row >= arguments.seqlen_q * arguments.q_per_kv)
      continue;
    const int query = row / arguments.q_per_kv;
    const int head = line.kv_head * arguments.q_per_kv + row % arguments.q_per_kv;
    const bool sees_nothing = merged.sum[i] == 0.0f;
    const float scale = sees_nothing ? 0.0f : 1.0f / merged.sum[i];
    Element* out = static_cast<Element*>(arguments.out) +
                   line.request * arguments.out_strides.batch +
                   query * arguments.out_strides.token + head * arguments.out_strides.head;
#pragma unroll
    for (int j = 0; j < lines_at_once; ++j) {
      const int column = line.place.column + j * column_step<order>;
      if (column < config::head_dim_v)
        store_values(out + column, i, merged.values[j], scale);
    }
    if (line.place.column == 0 && arguments.lse != nullptr) {
      arguments.lse[line.request * arguments.lse_strides.batch +
                    query * arguments.lse_strides.token + head * arguments.lse_strides.head] =
          sees_nothing ? negative_infinity()
                       : (merged.maximum[i] + log2_approximate(merged.sum[i])) * ln_2;
    }
  }
}

// Only single lines are shared by warps.
template <int lines_at_once>
__device__ __forceinline__ void combine(const CombineArguments& arguments) {
  const int warps_per_line = lines_at_once > 1 ? 1
                             : has_fixed_order ? config::warps_per_line
                                               : arguments.warps_per_line;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int group = warp % warps_per_line;
  const int per_block = config::num_warps / warps_per_line;
  const unsigned count = static_cast<unsigned>(arguments.batch) * arguments.num_kv_heads *
                         arguments.partial.tiles * (lines / lines_at_once);
  // The same number of turns for all warps of a block: they meet in merge_warps.
  for (unsigned first = blockIdx.x * per_block; first < count; first += gridDim.x * per_block) {
    const unsigned index = first + warp / warps_per_line;
    Line line = {};
    if (index < count)
      line = find_line<lines_at_once>(arguments, index, lane);
    wait_for_attention();
    Merged<lines_at_once> merged;
    reset(merged);
    merge_pieces(line, group, warps_per_line, merged);
    if constexpr (lines_at_once == 1) {
      if (warps_per_line > 1)
        merge_warps(warps_per_line, group, lane, merged);
    }
    if (line.num_pieces > 0 && group == 0)
      store_line(arguments, line, merged);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::num_warps * 32, 1)
    combine_splits(const __grid_constant__ CombineArguments arguments) {
  if (arguments.piece_offsets[arguments.batch] > 0) {
    if (has_fixed_order || arguments.lines_at_once == 1 || most_lines_at_once == 1) {
      combine<1>(arguments);
    } else {
      combine<most_lines_at_once>(arguments);
    }
  }
  // Also where there is nothing to merge: what follows in the stream waits for this grid alone, and
  // must not begin before the attention kernel has ended.
  wait_for_attention();
}
