// Which keys a query sees by its place, where they are one interval: the part of a mask that is
// known without reading memory per key. Masks that read some see an interval of keys that the rest
// of the test (device/prefill_mask.cuh) then thins out.
#pragma once

#include "kernel_config.cuh"

#include "device/prefill_work.cuh"

// Keys [begin, end).
struct KeyInterval {
  int begin;
  int end;
};

constexpr bool mask_is_chunked =
    config::mask == MaskKind::chunked || config::mask == MaskKind::chunked_causal;
constexpr bool mask_is_causal =
    config::mask == MaskKind::causal || config::mask == MaskKind::chunked_causal;
constexpr bool mask_is_materialized = config::mask == MaskKind::materialized_bool ||
                                      config::mask == MaskKind::materialized_additive ||
                                      config::mask == MaskKind::materialized_bits;

// First key of the chunk that holds key `place`, which may be negative.
__device__ __forceinline__ int first_of_chunk(int place, int key_position) {
  constexpr int size = mask_is_chunked ? config::chunk_size : 1;
  const int position = place + key_position;
  const int chunk = position >= 0 ? position / size : -((size - 1 - position) / size);
  return chunk * size - key_position;
}

// Of query `query`, which need not exist. Both ends rise with the query.
__device__ __forceinline__ KeyInterval key_interval(
    const attnjit::kernel_interface::PrefillMask& mask, const PrefillWork& work, int query) {
  const int place = work.query_place + query;
  KeyInterval keys = {0, work.seqlen_kv};
  if constexpr (mask_is_causal)
    keys.end = min(keys.end, place + 1);
  if constexpr (config::mask == MaskKind::sliding_window) {
    if constexpr (config::window_left >= 0)
      keys.begin = max(place - config::window_left, 0);
    if constexpr (config::window_right >= 0)
      keys.end = min(keys.end, place + config::window_right + 1);
  }
  if constexpr (mask_is_chunked) {
    const int first = first_of_chunk(place, work.key_position);
    keys.begin = max(first, 0);
    keys.end = min(keys.end, first + config::chunk_size);
  }
  if constexpr (config::mask == MaskKind::prefix_lm)
    keys.end = min(keys.end, max(place + 1, mask.prefix_lens[work.request]));
  if constexpr (mask_is_materialized || config::mask == MaskKind::document)
    keys.end = min(keys.end, mask.keys);
  return keys;
}
