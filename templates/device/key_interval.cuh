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

// The masks that are joined; a mask that is not composed is one clause of its own.
constexpr MaskClauses mask_clauses = config::mask == MaskKind::composed
                                         ? config::mask_clauses
                                         : MaskClauses{1, {mask_set(config::mask)}};
constexpr int num_clauses = mask_clauses.count;

// Whether one of `kinds` is among a clause's masks.
template <int clause, MaskKind... kinds>
constexpr bool clause_has = (mask_clauses.masks[clause] & mask_set(kinds...)) != 0;

constexpr unsigned masks_of_all_clauses() {
  unsigned masks = 0;
  for (int clause = 0; clause < num_clauses; ++clause)
    masks |= mask_clauses.masks[clause];
  return masks;
}

template <MaskKind... kinds>
constexpr bool mask_has = (masks_of_all_clauses() & mask_set(kinds...)) != 0;

template <int clause>
constexpr bool clause_is_materialized =
    clause_has<clause, MaskKind::materialized_bool, MaskKind::materialized_additive,
               MaskKind::materialized_bits>;

constexpr bool mask_is_chunked = mask_has<MaskKind::chunked, MaskKind::chunked_causal>;
constexpr bool mask_is_additive = mask_has<MaskKind::materialized_additive>;

// First key of the chunk that holds key `place`, which may be negative.
__device__ __forceinline__ int first_of_chunk(int place, int key_position) {
  constexpr int size = mask_is_chunked ? config::chunk_size : 1;
  const int position = place + key_position;
  const int chunk = position >= 0 ? position / size : -((size - 1 - position) / size);
  return chunk * size - key_position;
}

// Of query `query`, which need not exist: the keys that all masks of a clause may show it. Both
// ends rise with the query, and the end may lie before the beginning.
template <int clause>
__device__ __forceinline__ KeyInterval key_interval(
    const attnjit::kernel_interface::PrefillMask& mask, const PrefillWork& work, int query) {
  const int place = work.query_place + query;
  KeyInterval keys = {0, work.seqlen_kv};
  if constexpr (clause_has<clause, MaskKind::causal, MaskKind::chunked_causal>)
    keys.end = min(keys.end, place + 1);
  if constexpr (clause_has<clause, MaskKind::sliding_window>) {
    if constexpr (config::window_left >= 0)
      keys.begin = max(place - config::window_left, 0);
    if constexpr (config::window_right >= 0)
      keys.end = min(keys.end, place + config::window_right + 1);
  }
  if constexpr (clause_has<clause, MaskKind::chunked, MaskKind::chunked_causal>) {
    const int first = first_of_chunk(place, work.key_position);
    keys.begin = max(first, keys.begin);
    keys.end = min(keys.end, first + config::chunk_size);
  }
  if constexpr (clause_has<clause, MaskKind::prefix_lm>)
    keys.end = min(keys.end, max(place + 1, mask.prefix_lens[work.request]));
  if constexpr (clause_is_materialized<clause>)
    keys.end = min(keys.end, mask.keys);
  if constexpr (clause_has<clause, MaskKind::document>)
    keys.end = min(keys.end, mask.segment_keys);
  return keys;
}

// The least interval that holds those of all clauses.
template <int clause = 0>
__device__ __forceinline__ KeyInterval joined_interval(
    const attnjit::kernel_interface::PrefillMask& mask, const PrefillWork& work, int query) {
  KeyInterval keys = key_interval<clause>(mask, work, query);
  if constexpr (clause + 1 < num_clauses) {
    const KeyInterval others = joined_interval<clause + 1>(mask, work, query);
    keys = {min(keys.begin, others.begin), max(keys.end, others.end)};
  }
  return keys;
}
