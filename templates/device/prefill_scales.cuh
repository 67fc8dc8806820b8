// The scales of fp8 queries, keys and values in kernels/prefill_sm80.cu. Those of a whole tensor or
// head are one number for a thread block, those of tokens one per row or key: products are
// multiplied with them in fp32. Those of blocks of columns are multiplied in when fp8 becomes 16
// bits (device/prefill_fp8.cuh).
#pragma once

#include "device/prefill_block.cuh"
#include "device/prefill_work.cuh"

template <ScaleGrain grain>
constexpr bool is_one_number = grain == ScaleGrain::per_tensor || grain == ScaleGrain::per_head;

constexpr bool has_row_scales = config::scales_q == ScaleGrain::per_token;
constexpr bool has_key_scales = config::scales_kv == ScaleGrain::per_token;
constexpr bool has_block_scales =
    is_one_number<config::scales_q> || is_one_number<config::scales_kv>;

// In shared memory; what a config does not ask for takes no room.
template <bool is_there>
struct BlockScales {
  static constexpr float* block = nullptr;
};
template <>
struct BlockScales<true> {
  alignas(16) float block[2];  // the softmax scale with those of q and k; that of v
};

template <bool is_there>
struct RowScales {
  static constexpr float* rows = nullptr;
};
template <>
struct RowScales<true> {
  alignas(16) float rows[config::block_m];
};

// Of a tile's keys, and of its values. Where V is a prefix of K these are the same, and each of the
// two buffers of tiles has its own: one is filled while warps that are behind still use the other.
template <bool is_there>
struct TokenScales {
  static constexpr float (*tokens)[config::block_n] = nullptr;
};
template <>
struct TokenScales<true> {
  alignas(16) float tokens[2][config::block_n];
};

struct SharedScales : BlockScales<has_block_scales>,
                      RowScales<has_row_scales>,
                      TokenScales<has_key_scales> {};

// Scales that are not given are 1.
template <ScaleGrain grain, typename Scales>
__device__ __forceinline__ float block_scale(const Scales& of, const PrefillWork& work) {
  if constexpr (is_one_number<grain>) {
    if (of.scales != nullptr)
      return of.scales[work.request * of.strides.batch + work.kv_head * of.strides.head];
  }
  return 1.0f;
}

// By one thread.
__device__ __forceinline__ void set_block_scales(
    SharedScales& scales, const attnjit::kernel_interface::PrefillArguments& arguments,
    const PrefillWork& work) {
  if constexpr (has_block_scales) {
    const float k = block_scale<config::scales_kv>(arguments.k_scales, work);
    scales.block[0] =
        arguments.softmax_scale * block_scale<config::scales_q>(arguments.q_scales, work) * k;
    scales.block[1] =
        value_is_prefix ? k : block_scale<config::scales_kv>(arguments.v_scales, work);
  }
}

__device__ __forceinline__ void set_row_scales(
    SharedScales& scales, const attnjit::kernel_interface::PrefillArguments& arguments,
    const PrefillWork& work) {
  if constexpr (has_row_scales) {
    for (int i = threadIdx.x; i < config::block_m; i += num_threads) {
      const int row = work.first_row + i;
      const bool is_scaled = row < work.num_rows && arguments.q_scales.scales != nullptr;
      scales.rows[i] =
          is_scaled ? arguments.q_scales.scales[row_offset(arguments.q_scales.strides, work, row)]
                    : 1.0f;
    }
  }
}

// What a product of q and k is multiplied with before everything else, besides the scales of its
// row and key.
__device__ __forceinline__ float score_scale(
    const attnjit::kernel_interface::PrefillArguments& arguments, const SharedScales& scales) {
  if constexpr (has_block_scales)
    return scales.block[0];
  else
    return arguments.softmax_scale;
}

__device__ __forceinline__ float row_scale(const SharedScales& scales, int row) {
  if constexpr (has_row_scales)
    return scales.rows[row];
  else
    return 1.0f;
}

// Of key `key` of the tile in `buffer`, which is 0 unless V is a prefix of K.
__device__ __forceinline__ float key_scale(const SharedScales& scales, int buffer, int key) {
  if constexpr (has_key_scales)
    return scales.tokens[value_is_prefix ? buffer : 0][key];
  else
    return 1.0f;
}

__device__ __forceinline__ float value_scale(const SharedScales& scales, int buffer, int key) {
  if constexpr (has_key_scales)
    return scales.tokens[value_is_prefix ? buffer : 1][key];
  else
    return 1.0f;
}

// That of all values of the thread block.
__device__ __forceinline__ float value_block_scale(const SharedScales& scales) {
  if constexpr (has_block_scales)
    return scales.block[1];
  else
    return 1.0f;
}

// What an output is multiplied with once it has been summed up.
__device__ __forceinline__ float output_scale(
    const attnjit::kernel_interface::PrefillArguments& arguments, const SharedScales& scales) {
  float scale = value_block_scale(scales);
  if constexpr (is_fp8<config::dtype_out>) {
    if (arguments.out_scale != nullptr)
      scale /= *arguments.out_scale;
  }
  return scale;
}
