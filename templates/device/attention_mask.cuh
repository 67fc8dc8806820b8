// Which keys a query sees, and how a materialized mask changes a score. Every mask also hides keys
// at or past the sequence's end.
#pragma once

#include "kernel_config.cuh"

#include "device/config_types.cuh"
#include "device/numeric_types.cuh"
#include "device/softmax_math.cuh"
#include "interface/paged_decode_arguments.h"

template <MaskKind mask>
constexpr bool mask_is_materialized =
    mask == MaskKind::materialized_bool || mask == MaskKind::materialized_additive;

// Hides keys at a sequence's beginning too.
constexpr bool has_window = config::mask == MaskKind::sliding_window;

// Keys [begin, end) are visible to a query before any materialized mask. Where they are tested,
// `begin` is asked for only if there is a window.
struct VisibleKeys {
  int begin;  // 0 without a window
  int end;
};

// Of query `query` of `seqlen_q`. Causal masks and windows are bottom-right aligned: the last
// query's own key is the last.
__device__ __forceinline__ VisibleKeys visible_keys(int seqlen_kv, int seqlen_q, int query) {
  using attnjit::kernel_interface::first_visible_key;
  const int later = seqlen_q - 1 - query;  // queries after this one
  if constexpr (has_window) {
    return {first_visible_key(seqlen_kv, later + 1, config::window_left),
            seqlen_kv - max(later - config::window_right, 0)};
  } else {
    return {0, config::mask == MaskKind::causal ? seqlen_kv - later : seqlen_kv};
  }
}

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
