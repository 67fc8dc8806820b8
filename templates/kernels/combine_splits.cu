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
__device__ __forceinline__ void store_line(const Line& line, const Merged<lines_at_once>& merged) {
  constexpr int num_rows = order == PartialOrder::rows ? 1 : 2;
#pragma unroll
  for (int i = 0; i < num_rows; ++i) {
    const RowPlace& place = line.rows[i];
    if (place.out == nullptr)
      continue;
    const bool sees_nothing = merged.sum[i] == 0.0f;
    const float scale = sees_nothing ? 0.0f
                                     : reciprocal_approximate(denominator<config::has_sinks>(
                                           place.sink, merged.maximum[i], merged.sum[i]));
#pragma unroll
    for (int j = 0; j < lines_at_once; ++j) {
      if (line.column + j * column_step<order> < config::head_dim_v)
        store_values(place.out + j * column_step<order>, i, merged.values[j], scale);
    }
    if (place.lse != nullptr) {
      *place.lse = sees_nothing ? negative_infinity()
                                : (merged.maximum[i] + log2_approximate(merged.sum[i])) * ln_2;
    }
  }
}

// Only single lines are shared by warps.
template <int lines_at_once>
__device__ __forceinline__ void combine(const CombineArguments& arguments) {
  const int warps_per_line = lines_at_once == 1 ? arguments.warps_per_line : 1;
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
    if constexpr (has_fixed_order) {
      merge_ordered(line, warps_per_line, group, lane, merged);
    } else {
      merge_pieces(line, group, warps_per_line, merged);
      if constexpr (lines_at_once == 1) {
        if (warps_per_line > 1)
          merge_warps(warps_per_line, group, lane, merged);
      }
    }
    if (line.num_pieces > 0 && group == 0)
      store_line(line, merged);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::num_warps * 32, 1)
    combine_splits(const __grid_constant__ CombineArguments arguments) {
  if (arguments.piece_offsets[arguments.batch] > 0) {
    if (arguments.lines_at_once == 1 || most_lines_at_once == 1) {
      combine<1>(arguments);
    } else {
      combine<most_lines_at_once>(arguments);
    }
  }
  // Also where there is nothing to merge: what follows in the stream waits for this grid alone, and
  // must not begin before the attention kernel has ended.
  wait_for_attention();
}
