// Merges the partial results of split requests by their maxima and sums, line by line as they lie
// in memory; warps_per_line neighbouring warps share a line's pieces. Rows of requests that were
// not split are left alone, the attention kernel has written them. Grid: any; blocks take lines in
// turn.
#include "kernel_config.cuh"

#include "device/attention_sink.cuh"
#include "device/batch_merge.cuh"
#include "device/combine_launch.cuh"
#include "device/combine_pieces.cuh"
#include "device/numeric_types.cuh"
#include "device/ordered_merge.cuh"
#include "device/softmax_math.cuh"
#include "interface/paged_decode_arguments.h"

using namespace attnjit::kernel_interface;

namespace {

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
__device__ __forceinline__ void store_line(const Rows& rows, const Line& line,
                                           const Merged<lines_at_once>& merged) {
#pragma unroll
  for (int i = 0; i < num_rows; ++i) {
    const RowPlace& place = rows.places[i];
    if (place.out == nullptr)
      continue;
    const bool sees_nothing = merged.sum[i] == 0.0f;
    const float scale = sees_nothing ? 0.0f
                                     : reciprocal_approximate(denominator<config::has_sinks>(
                                           place.sink, merged.maximum[i], merged.sum[i]));
#pragma unroll
    for (int j = 0; j < lines_at_once; ++j) {
      const int column = line.column + j * line_columns<order>;
      if (column < config::head_dim_v)
        store_values(place.out + column, i, merged.values[j], scale);
    }
    if (line.column == 0 && place.lse != nullptr) {
      *place.lse = sees_nothing ? negative_infinity()
                                : (merged.maximum[i] + log2_approximate(merged.sum[i])) * ln_2;
    }
  }
}

// How many warps take a share of a line's pieces, some eight each, or a segment: a power of two, as
// its exponent, for divisions by it are many instructions.
__device__ __forceinline__ int share_bits(const CombineArguments& arguments, int num_pieces) {
  constexpr int pieces_per_warp = has_fixed_order ? config::segment_pieces : 8;
  int bits = 0;
  while (1 << bits < arguments.warps_per_line &&
         (pieces_per_warp << bits) * arguments.batch < num_pieces)
    ++bits;
  return bits;
}

// How many times lines_at_once lines of the same rows a warp takes, for all to be taken at once:
// likewise.
template <int lines_at_once>
__device__ __forceinline__ int turn_bits(unsigned num_lines) {
  constexpr int all = lines_per_group / lines_at_once;
  int bits = 0;
  while (all % (2 << bits) == 0 && num_lines >> bits > gridDim.x * config::num_warps)
    ++bits;
  return bits;
}

template <int lines_at_once>
__device__ __forceinline__ void merge_line(const Rows& rows, const Line& line,
                                           const LineShare& share, int warp, int lane,
                                           WarpResults& results) {
  Merged<lines_at_once> merged;
  reset(merged);
  if constexpr (has_fixed_order) {
    merge_ordered(rows, line, share, warp, lane, results, merged);
  } else {
    merge_pieces(rows, line, share, lane, merged);
    if constexpr (lines_at_once == 1) {
      if (share.bits > 0)
        merge_warps(share, warp, lane, results, merged);
    }
  }
  if (rows.num_pieces > 0 && share.first == 0)
    store_line(rows, line, merged);
}

// Only single lines are shared by warps. `num_pieces` is that of all requests.
template <int lines_at_once>
__device__ __forceinline__ void combine(const CombineArguments& arguments, int num_pieces) {
  __shared__ WarpResults results;
  constexpr unsigned all = lines_per_group / lines_at_once;  // of a row group
  const unsigned num_lines = static_cast<unsigned>(arguments.batch) * arguments.num_kv_heads *
                             arguments.partial.tiles * groups * all;
  const int shares = lines_at_once == 1 ? share_bits(arguments, num_pieces) : 0;
  const int turns = shares == 0 ? turn_bits<lines_at_once>(num_lines) : 0;
  const int warp = warp_uniform(threadIdx.x / 32);
  const int lane = threadIdx.x % 32;
  const LineShare share = {warp & ((1 << shares) - 1), shares};
  const unsigned per_block = config::num_warps >> shares << turns;
  // The same number of turns for all warps of a block: they meet in merge_warps.
  for (unsigned first = blockIdx.x * per_block; first < num_lines; first += gridDim.x * per_block) {
    const unsigned index = first + (warp >> shares << turns);
    Rows rows = {};
    if (index < num_lines)
      rows = find_rows(arguments, index / all, lane);
    if (num_pieces == 0)
      return;
    wait_for_attention();
#pragma unroll 1
    for (unsigned i = index; i < index + (1 << turns); ++i) {
      const Line line = find_line(rows, i % all * lines_at_once, lane);
      merge_line<lines_at_once>(rows, line, share, warp, lane, results);
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::num_warps * 32, 1)
    combine_splits(const __grid_constant__ CombineArguments arguments) {
  const int num_pieces = arguments.piece_offsets[arguments.batch];
  if (arguments.lines_at_once == 1) {
    combine<1>(arguments, num_pieces);
  } else if (arguments.lines_at_once == 2) {
    combine<most_lines_at_once == 1 ? 1 : 2>(arguments, num_pieces);
  } else {
    combine<most_lines_at_once>(arguments, num_pieces);
  }
  // Also where there is nothing to merge: what follows in the stream waits for this grid alone, and
  // must not begin before the attention kernel has ended.
  wait_for_attention();
}
