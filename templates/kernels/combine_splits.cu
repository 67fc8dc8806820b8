// Merges the partial results of split requests by their LSE. A unit is one query row's chunk of
// columns; warps_per_unit warps share its pieces. Rows of requests that were not split are left
// alone, the attention kernel has written them. Grid: x = units / units per block.
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
constexpr int units_per_block = config::num_warps / config::warps_per_unit;
constexpr int pieces_in_flight = 4;

// A row of the output and where its pieces lie.
struct Row {
  long long request;
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

__device__ __forceinline__ Row find_row(const CombineArguments& arguments, long long index) {
  const int num_q_heads = arguments.num_kv_heads * arguments.q_per_kv;
  Row row;
  row.head = static_cast<int>(index % num_q_heads);
  const long long token = index / num_q_heads;
  row.query = static_cast<int>(token % arguments.seqlen_q);
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

// A weighted sum of pieces: out = sum of exp(lse - maximum) * piece, in units relative to
// `maximum`.
struct Merged {
  float maximum = negative_infinity();  // of the LSEs
  float weight = 0.0f;                  // sum of exp(lse - maximum)
  float out[columns_per_lane] = {};
};

__device__ __forceinline__ void add(Merged& merged, float maximum, float weight,
                                    const float (&out)[columns_per_lane]) {
  // A piece that saw nothing has written no output worth reading.
  if (maximum == negative_infinity())
    return;
  const float larger = fmaxf(merged.maximum, maximum);
  const float old_factor = exp2_approximate((merged.maximum - larger) * log2_e);
  const float factor = exp2_approximate((maximum - larger) * log2_e);
  merged.maximum = larger;
  merged.weight = merged.weight * old_factor + weight * factor;
#pragma unroll
  for (int i = 0; i < columns_per_lane; ++i) {
    merged.out[i] = merged.out[i] * old_factor + out[i] * factor;
  }
}

// This warp's pieces. Loads of several pieces are in flight together.
__device__ __forceinline__ Merged merge_pieces(const CombineArguments& arguments, const Row& row,
                                               const Place& at) {
  Merged merged;
  constexpr int step = config::warps_per_unit * pieces_in_flight;
  for (int first = at.group; first < row.num_pieces; first += step) {
    float values[pieces_in_flight][columns_per_lane] = {};
    float lse[pieces_in_flight];
#pragma unroll
    for (int i = 0; i < pieces_in_flight; ++i) {
      const int piece = first + i * config::warps_per_unit;
      const long long partial = row.first_partial + piece * row.partial_stride;
      lse[i] = negative_infinity();
      if (piece < row.num_pieces && at.column < config::head_dim_v) {
        lse[i] = arguments.partial.lse[partial];
        const float4 loaded = *reinterpret_cast<const float4*>(
            arguments.partial.out + partial * config::head_dim_v + at.column);
        values[i][0] = loaded.x;
        values[i][1] = loaded.y;
        values[i][2] = loaded.z;
        values[i][3] = loaded.w;
      }
    }
#pragma unroll
    for (int i = 0; i < pieces_in_flight; ++i)
      add(merged, lse[i], 1.0f, values[i]);
  }
  return merged;
}

// The sum over the warps of a unit, in its first warp.
__device__ __forceinline__ void merge_groups(const Place& at, Merged& merged) {
  if constexpr (config::warps_per_unit > 1) {
    __shared__ Merged parts[config::num_warps][32];
    parts[threadIdx.x / 32][at.lane] = merged;
    __syncthreads();  // all parts are written
    if (at.group == 0) {
      for (int i = 1; i < config::warps_per_unit; ++i) {
        const Merged& other = parts[threadIdx.x / 32 + i][at.lane];
        add(merged, other.maximum, other.weight, other.out);
      }
    }
  }
}

__device__ __forceinline__ void store(const CombineArguments& arguments, const Row& row,
                                      const Place& at, const Merged& merged) {
  const bool sees_nothing = merged.weight == 0.0f;
  if (at.column < config::head_dim_v) {
    const float scale = sees_nothing ? 0.0f : 1.0f / merged.weight;
    Element* out =
        static_cast<Element*>(arguments.out) + row.request * arguments.out_strides.batch +
        row.query * arguments.out_strides.token + row.head * arguments.out_strides.head + at.column;
    *reinterpret_cast<uint2*>(out) =
        make_uint2(pack_pair<config::dtype>(merged.out[0] * scale, merged.out[1] * scale),
                   pack_pair<config::dtype>(merged.out[2] * scale, merged.out[3] * scale));
  }
  if (at.column == 0 && arguments.lse != nullptr) {
    arguments.lse[row.request * arguments.lse_strides.batch +
                  row.query * arguments.lse_strides.token + row.head * arguments.lse_strides.head] =
        sees_nothing ? negative_infinity()
                     : merged.maximum + log2_approximate(merged.weight) * ln_2;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::num_warps * 32, 1)
    combine_splits(const __grid_constant__ CombineArguments arguments) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const long long unit =
      static_cast<long long>(blockIdx.x) * units_per_block + warp / config::warps_per_unit;
  const long long index = unit / num_chunks;
  if (index >= arguments.num_rows)
    return;
  const Row row = find_row(arguments, index);
  if (row.num_pieces == 0)
    return;
  const Place at = {warp % config::warps_per_unit, lane,
                    static_cast<int>(unit % num_chunks) * chunk_columns + lane * columns_per_lane};
  wait_for_attention();
  Merged merged = merge_pieces(arguments, row, at);
  merge_groups(at, merged);
  if (at.group == 0)
    store(arguments, row, at, merged);
}
