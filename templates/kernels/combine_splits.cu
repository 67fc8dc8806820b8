// Merges the partial results of split requests by their LSE. A unit is one query row, or where rows
// are few one chunk of its columns; warps_per_unit neighbouring warps share its pieces. Rows of
// requests that were not split are left alone, the attention kernel has written them. Grid: any;
// blocks take units in turn.
#include "kernel_config.cuh"

#include "device/combine_launch.cuh"
#include "device/numeric_types.cuh"
#include "device/softmax_math.cuh"
#include "interface/paged_decode_arguments.h"

using namespace attnjit::kernel_interface;

namespace {

constexpr int columns_per_lane = 4;
constexpr int chunk_columns = 32 * columns_per_lane;
constexpr int num_chunks = (config::head_dim_v + chunk_columns - 1) / chunk_columns;

// A row of the output and where its pieces lie.
struct Row {
  int request;
  int query;
  int head;
  int num_pieces;
  long long first_partial;   // row of the first piece in the partial results
  long long partial_stride;  // rows between pieces
};

// This warp's place in its unit.
struct Place {
  int group;  // takes pieces group, group + warps_per_unit, …
  int lane;
  int column;  // first of this lane's
};

__device__ __forceinline__ Row find_row(const CombineArguments& arguments, unsigned index) {
  const unsigned num_q_heads = arguments.num_kv_heads * arguments.q_per_kv;
  const unsigned token = index / num_q_heads;
  Row row;
  row.head = index % num_q_heads;
  row.query = token % arguments.seqlen_q;
  row.request = token / arguments.seqlen_q;
  const int first_piece = arguments.piece_offsets[row.request];
  row.num_pieces = arguments.piece_offsets[row.request + 1] - first_piece;
  const int rows = arguments.seqlen_q * arguments.q_per_kv;
  row.partial_stride = static_cast<long long>(arguments.num_kv_heads) * rows;
  row.first_partial = first_piece * row.partial_stride +
                      static_cast<long long>(row.head / arguments.q_per_kv) * rows +
                      row.query * arguments.q_per_kv + row.head % arguments.q_per_kv;
  return row;
}

// Of all of a row's pieces.
struct Weights {
  float maximum;  // of the LSEs
  float sum;      // of exp(lse - maximum)
};

// A piece that saw nothing weighs nothing.
__device__ __forceinline__ float weight_of(float lse, float maximum) {
  return lse == negative_infinity() ? 0.0f : exp2_approximate((lse - maximum) * log2_e);
}

__device__ __forceinline__ Weights weigh_pieces(const CombineArguments& arguments, const Row& row,
                                                int lane) {
  constexpr int at_once = 4;  // loads in flight
  const float* lse = arguments.partial.lse + row.first_partial;
  Weights weights = {negative_infinity(), 0.0f};
  for (int first = lane; first < row.num_pieces; first += 32 * at_once) {
    float values[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const int piece = first + i * 32;
      values[i] = piece < row.num_pieces ? lse[piece * row.partial_stride] : negative_infinity();
    }
#pragma unroll
    for (int i = 0; i < at_once; ++i)
      weights.maximum = fmaxf(weights.maximum, values[i]);
  }
#pragma unroll
  for (int step = 1; step < 32; step *= 2)
    weights.maximum = fmaxf(weights.maximum, __shfl_xor_sync(0xffffffffu, weights.maximum, step));
  for (int piece = lane; piece < row.num_pieces; piece += 32)
    weights.sum += weight_of(lse[piece * row.partial_stride], weights.maximum);
#pragma unroll
  for (int step = 1; step < 32; step *= 2)
    weights.sum += __shfl_xor_sync(0xffffffffu, weights.sum, step);
  return weights;
}

// `chunks` chunks of columns, 128 apart.
template <int chunks>
using Columns = float4[chunks];

template <int chunks>
constexpr int pieces_in_flight = chunks == 1 ? 8 : 4;

// Some of this warp's pieces, all loads in flight together.
template <int chunks>
struct LoadedPieces {
  Columns<chunks> out[pieces_in_flight<chunks>];
  float lse[pieces_in_flight<chunks>];
};

template <int chunks>
__device__ __forceinline__ void load_pieces(const CombineArguments& arguments, const Row& row,
                                            const Place& at, int first,
                                            LoadedPieces<chunks>& pieces) {
#pragma unroll
  for (int i = 0; i < pieces_in_flight<chunks>; ++i) {
    const int piece = first + i * arguments.warps_per_unit;
    const long long partial = row.first_partial + piece * row.partial_stride;
    const float* out = arguments.partial.out + partial * config::head_dim_v + at.column;
    pieces.lse[i] = piece < row.num_pieces ? arguments.partial.lse[partial] : negative_infinity();
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const bool is_column = at.column + chunk * chunk_columns < config::head_dim_v;
      pieces.out[i][chunk] = piece < row.num_pieces && is_column
                                 ? *reinterpret_cast<const float4*>(out + chunk * chunk_columns)
                                 : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
  }
}

__device__ __forceinline__ void add(float4& sum, float weight, const float4& values) {
  sum.x += weight * values.x;
  sum.y += weight * values.y;
  sum.z += weight * values.z;
  sum.w += weight * values.w;
}

// The weighted sum of this warp's pieces. The first loads are under way while the row is weighed.
template <int chunks>
__device__ __forceinline__ Weights merge_pieces(const CombineArguments& arguments, const Row& row,
                                                const Place& at, Columns<chunks>& sum) {
  LoadedPieces<chunks> pieces;
  load_pieces<chunks>(arguments, row, at, at.group, pieces);
  const Weights weights = weigh_pieces(arguments, row, at.lane);
  for (int first = at.group;;) {
#pragma unroll
    for (int i = 0; i < pieces_in_flight<chunks>; ++i) {
      const float weight = weight_of(pieces.lse[i], weights.maximum);
      if (weight == 0.0f)  // what it holds may be no number
        continue;
#pragma unroll
      for (int chunk = 0; chunk < chunks; ++chunk)
        add(sum[chunk], weight, pieces.out[i][chunk]);
    }
    first += arguments.warps_per_unit * pieces_in_flight<chunks>;
    if (first >= row.num_pieces)
      return weights;
    load_pieces<chunks>(arguments, row, at, first, pieces);
  }
}

// The sum over the warps of a unit, in its first warp. All threads of the block.
__device__ __forceinline__ void merge_groups(int warps_per_unit, const Place& at, Columns<1>& sum) {
  __shared__ float4 sums[config::num_warps][32];
  const int warp = threadIdx.x / 32;
  __syncthreads();  // the sums of the units before are no longer read
  sums[warp][at.lane] = sum[0];
  __syncthreads();  // all sums are written
  if (at.group == 0) {
    for (int i = 1; i < warps_per_unit; ++i)
      add(sum[0], 1.0f, sums[warp + i][at.lane]);
  }
}

template <int chunks>
__device__ __forceinline__ void store(const CombineArguments& arguments, const Row& row,
                                      const Place& at, const Weights& weights,
                                      const Columns<chunks>& sum) {
  const bool sees_nothing = weights.sum == 0.0f;
  const float scale = sees_nothing ? 0.0f : 1.0f / weights.sum;
  Element* out = static_cast<Element*>(arguments.out) + row.request * arguments.out_strides.batch +
                 row.query * arguments.out_strides.token + row.head * arguments.out_strides.head +
                 at.column;
#pragma unroll
  for (int chunk = 0; chunk < chunks; ++chunk) {
    if (at.column + chunk * chunk_columns >= config::head_dim_v)
      continue;
    *reinterpret_cast<uint2*>(out + chunk * chunk_columns) =
        make_uint2(pack_pair<config::dtype>(sum[chunk].x * scale, sum[chunk].y * scale),
                   pack_pair<config::dtype>(sum[chunk].z * scale, sum[chunk].w * scale));
  }
  if (at.column == 0 && arguments.lse != nullptr) {
    arguments.lse[row.request * arguments.lse_strides.batch +
                  row.query * arguments.lse_strides.token + row.head * arguments.lse_strides.head] =
        sees_nothing ? negative_infinity() : weights.maximum + log2_approximate(weights.sum) * ln_2;
  }
}

// All units of this block, of `chunks` chunks each. Only units of one chunk are shared by warps.
template <int chunks>
__device__ __forceinline__ void combine(const CombineArguments& arguments) {
  constexpr int units_per_row = num_chunks / chunks;
  const int warps_per_unit = arguments.warps_per_unit;
  const int warp = threadIdx.x / 32;
  const int units_per_block = config::num_warps / warps_per_unit;
  const long long num_units = static_cast<long long>(arguments.num_rows) * units_per_row;
  // The same number of turns for all warps of a block: they meet in merge_groups.
  for (long long first = static_cast<long long>(blockIdx.x) * units_per_block; first < num_units;
       first += static_cast<long long>(gridDim.x) * units_per_block) {
    const long long unit = first + warp / warps_per_unit;
    Place at = {warp % warps_per_unit, static_cast<int>(threadIdx.x % 32), 0};
    at.column = static_cast<int>(unit % units_per_row) * chunk_columns + at.lane * columns_per_lane;
    Row row = {};
    if (unit < num_units)
      row = find_row(arguments, static_cast<unsigned>(unit / units_per_row));
    Weights weights = {};
    Columns<chunks> sum = {};
    if (row.num_pieces > 0)
      weights = merge_pieces<chunks>(arguments, row, at, sum);
    if constexpr (chunks == 1) {
      if (warps_per_unit > 1)
        merge_groups(warps_per_unit, at, sum);
    }
    if (row.num_pieces > 0 && at.group == 0)
      store<chunks>(arguments, row, at, weights, sum);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::num_warps * 32, 1)
    combine_splits(const __grid_constant__ CombineArguments arguments) {
  const bool has_pieces = arguments.piece_offsets[arguments.batch] > 0;
  // Also where there is nothing to merge: what follows in the stream waits for this grid alone, and
  // must not begin before the attention kernel has ended.
  wait_for_attention();
  if (!has_pieces)
    return;
  if (num_chunks == 1 || arguments.splits_rows) {
    combine<1>(arguments);
  } else {
    combine<num_chunks>(arguments);
  }
}
