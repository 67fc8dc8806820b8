// Which keys a query sees by its place in the sequence. Every mask also hides keys at or past the
// sequence's end.
#pragma once

#include "kernel_config.cuh"

#include "interface/decode_schedule.h"

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
