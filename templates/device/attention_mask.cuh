// Which tiles need no mask, and how a materialized mask changes a score.
#pragma once

#include "kernel_config.cuh"

#include "device/config_types.cuh"
#include "device/numeric_types.cuh"
#include "device/softmax_math.cuh"
#include "device/visible_keys.cuh"

template <MaskKind mask>
constexpr bool mask_is_materialized =
    mask == MaskKind::materialized_bool || mask == MaskKind::materialized_additive;

// True if every query sees every key of [begin, end), so that a tile needs no per-element work.
__device__ __forceinline__ bool tile_is_full(int seqlen_kv, int seqlen_q, int begin, int end) {
  if constexpr (has_window) {
    if (begin < visible_keys(seqlen_kv, seqlen_q, seqlen_q - 1).begin)
      return false;
  }
  return !mask_is_materialized<config::mask> && end <= visible_keys(seqlen_kv, seqlen_q, 0).end;
}

// `score`, in units of log2, under a materialized mask at element `index` of `base`.
template <MaskKind mask, DataType dtype_mask>
__device__ __forceinline__ float apply_materialized_mask(float score, const void* base,
                                                         long long index) {
  if constexpr (mask == MaskKind::materialized_bool) {
    return static_cast<const unsigned char*>(base)[index] ? score : negative_infinity();
  } else if constexpr (mask == MaskKind::materialized_additive) {
    return score + log2_e * load_float<dtype_mask>(base, index);
  } else {
    return score;
  }
}
