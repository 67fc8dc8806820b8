// Which keys a query sees, and how a materialized mask changes a score. Every mask also hides keys
// at or past the sequence's end.
#pragma once

#include "device/config_types.cuh"
#include "device/numeric_types.cuh"
#include "device/softmax_math.cuh"
#include "interface/paged_decode_arguments.h"

template <MaskKind mask>
constexpr bool mask_is_materialized =
    mask == MaskKind::materialized_bool || mask == MaskKind::materialized_additive;

// Keys [0, limit) are visible to query `query` of `seqlen_q` before any materialized mask. Causal
// is bottom-right aligned: the last query sees every key.
template <MaskKind mask>
__device__ __forceinline__ int key_limit(int seqlen_kv, int seqlen_q, int query) {
  return mask == MaskKind::causal ? seqlen_kv - (seqlen_q - 1 - query) : seqlen_kv;
}

// True if every query sees every key before `end`, so that a tile needs no per-element work.
template <MaskKind mask>
__device__ __forceinline__ bool tile_is_full(int seqlen_kv, int seqlen_q, int end) {
  return !mask_is_materialized<mask> && end <= key_limit<mask>(seqlen_kv, seqlen_q, 0);
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
