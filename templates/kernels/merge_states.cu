// Merges attention over parts of the keys into attention over all of them, by the parts' LSE:
// out = sum of e^(lse_i - lse) out_i, e^lse = sum of e^lse_i. Grid: x = blocks of rows, a row being
// a token and a head; a thread has eight columns of a row.
#include "kernel_config.cuh"

#include "device/numeric_types.cuh"
#include "device/softmax_math.cuh"
#include "interface/merge_states_arguments.h"

using namespace attnjit::kernel_interface;

namespace {

constexpr int columns = 8;  // of a thread: 16 bytes
constexpr int threads_per_row = config::head_dim_v / columns;
constexpr int rows_per_block = config::num_threads / threads_per_row;
static_assert(config::head_dim_v % columns == 0 && rows_per_block > 0, "whole rows to a block");

// What all parts come to. A part without keys has an LSE of -inf, or of +inf,
// which some libraries write for it: it weighs nothing, and its outputs may be no numbers.
struct Total {
  float maximum;
  float sum;  // of e^(lse - maximum)
};

__device__ __forceinline__ bool has_keys(float lse) {
  return fabsf(lse) != -negative_infinity();
}

__device__ __forceinline__ float load_lse(const PartialAttentionArguments& partial, long long token,
                                          int head) {
  return partial.lse[token * partial.strides.lse_token + head * partial.strides.lse_head];
}

// e^(lse - maximum): the difference first, for the product of a large LSE would be rounded.
__device__ __forceinline__ float weight_of(float lse, float maximum) {
  return exp2_approximate((lse - maximum) * log2_e);
}

__device__ __forceinline__ Total add_up(const MergeStatesArguments& arguments, long long token,
                                        int head) {
  Total total = {negative_infinity(), 0.0f};
  for (int i = 0; i < arguments.num_partials; ++i) {
    const float lse = load_lse(arguments.partials[i], token, head);
    if (!has_keys(lse))
      continue;
    const float maximum = fmaxf(total.maximum, lse);
    total.sum = total.sum * weight_of(total.maximum, maximum) + weight_of(lse, maximum);
    total.maximum = maximum;
  }
  return total;
}

__device__ __forceinline__ void add_values(float (&values)[columns], float weight,
                                           const void* source) {
  const uint4 packed = *static_cast<const uint4*>(source);
  const unsigned pairs[columns / 2] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (int i = 0; i < columns / 2; ++i) {
    const float2 pair = unpack_pair<config::dtype>(pairs[i]);
    values[2 * i] += weight * pair.x;
    values[2 * i + 1] += weight * pair.y;
  }
}

__device__ __forceinline__ uint4 pack_values(const float (&values)[columns]) {
  return make_uint4(pack_pair<config::dtype>(values[0], values[1]),
                    pack_pair<config::dtype>(values[2], values[3]),
                    pack_pair<config::dtype>(values[4], values[5]),
                    pack_pair<config::dtype>(values[6], values[7]));
}

}  // namespace

extern "C" __global__ void __launch_bounds__(config::num_threads)
    merge_states(const __grid_constant__ MergeStatesArguments arguments) {
  const int row_of_block = threadIdx.x / threads_per_row;
  const int column = threadIdx.x % threads_per_row * columns;
  const long long row = static_cast<long long>(blockIdx.x) * rows_per_block + row_of_block;
  const bool has_row = row_of_block < rows_per_block && row < arguments.num_rows;
  const long long token = has_row ? row / arguments.num_heads : 0;
  const int head = has_row ? static_cast<int>(row % arguments.num_heads) : 0;
  Total total = {negative_infinity(), 0.0f};
  if (has_row) {
    total = add_up(arguments, token, head);
    float values[columns] = {};
    for (int i = 0; i < arguments.num_partials; ++i) {
      const PartialAttentionArguments& partial = arguments.partials[i];
      const float lse = load_lse(partial, token, head);
      if (has_keys(lse)) {
        const float weight = weight_of(lse, total.maximum) / total.sum;
        add_values(values, weight,
                   static_cast<const Element*>(partial.out) + token * partial.strides.out_token +
                       head * partial.strides.out_head + column);
      }
    }
    Element* out = static_cast<Element*>(arguments.out) + token * arguments.strides.out_token +
                   head * arguments.strides.out_head + column;
    *reinterpret_cast<uint4*>(out) = pack_values(values);
  }
  __syncthreads();  // a part's LSE, which may be the result's place, is read by all of its row
  if (has_row && column == 0 && arguments.lse != nullptr) {
    arguments.lse[token * arguments.strides.lse_token + head * arguments.strides.lse_head] =
        total.sum == 0.0f ? negative_infinity()
                          : total.maximum + log2_approximate(total.sum) * ln_2;
  }
}
