// Merges the parts of a split prefill: every part saw some of the keys, and left a row's output
// unnormalised, relative to the maximum of its own scores. Grid: x = row tiles of the prefill times
// groups of rows of a tile, y = kv heads. A warp has a row.
#include "kernel_config.cuh"

#include "device/attention_sink.cuh"
#include "device/numeric_types.cuh"
#include "device/output_element.cuh"
#include "device/prefill_splits.cuh"
#include "device/prefill_work.cuh"
#include "device/softmax_math.cuh"
#include "interface/prefill_arguments.h"

using namespace attnjit::kernel_interface;

namespace {

constexpr int warps = config::num_threads / 32;
constexpr int groups = config::block_m / warps;
static_assert(groups * warps == config::block_m, "whole groups to a tile");

__device__ __forceinline__ float warp_maximum(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

__device__ __forceinline__ float warp_total(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

// Lane i has the factor of part i: there are at most 32.
__device__ __forceinline__ void store_row(const PrefillArguments& arguments,
                                          const PrefillWork& work, int row, float factor) {
  Output* out = static_cast<Output*>(arguments.out) + row_offset(arguments.out_strides, work, row);
  const float* partial =
      arguments.partial_out + partial_row(arguments, work, row, 0) * config::head_dim_v;
  const long long step = arguments.partial_rows * config::head_dim_v;
  const int lane = static_cast<int>(threadIdx.x % 32);
  // Unrolled, the second of two turns of unequal columns would keep its sum in memory.
#pragma unroll 1
  for (int first = 0; first < config::head_dim_v; first += 64) {
    const int column = first + lane * 2;
    float2 sum = {};
    for (int split = 0; split < arguments.num_splits; ++split) {
      const float weight = __shfl_sync(0xffffffffu, factor, split);
      if (weight != 0.0f && column < config::head_dim_v) {
        const float2 values = *reinterpret_cast<const float2*>(partial + split * step + column);
        sum.x = fmaf(weight, values.x, sum.x);
        sum.y = fmaf(weight, values.y, sum.y);
      }
    }
    if (column < config::head_dim_v)
      store_pair(out + column, sum.x, sum.y);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::num_threads)
    combine_prefill(const __grid_constant__ PrefillArguments arguments) {
  const PrefillWork work =
      find_work(arguments, static_cast<int>(blockIdx.x) / groups, static_cast<int>(blockIdx.y));
  const int row = work.first_row + static_cast<int>(blockIdx.x) % groups * warps +
                  static_cast<int>(threadIdx.x / 32);
  if (work.first_row < 0 || row >= work.num_rows)
    return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  PartialState state = {negative_infinity(), 0.0f};
  if (lane < arguments.num_splits)
    state = arguments.partial_states[partial_row(arguments, work, row, lane)];
  const float maximum = warp_maximum(state.maximum);
  const float weight = exp2_approximate(state.maximum - finite_maximum(maximum));
  const float sum = warp_total(state.sum * weight);
  const int head = head_of(work, row);
  const float sink = load_sink<config::has_sinks>(arguments.sinks, head);
  float scale = sum == 0.0f
                    ? 0.0f
                    : reciprocal_approximate(denominator<config::has_sinks>(sink, maximum, sum));
  if constexpr (is_fp8<config::dtype_out>) {
    if (arguments.out_scale != nullptr)
      scale /= *arguments.out_scale;
  }
  store_row(arguments, work, row, weight * scale);
  if (lane == 0 && arguments.lse != nullptr) {
    arguments.lse[row_offset(arguments.lse_strides, work, row)] =
        sum == 0.0f ? negative_infinity() : (maximum + log2_approximate(sum)) * ln_2;
  }
}
