// Where a new token goes in a paged cache. What has no place there is not written: no number from
// device memory, whatever it is, leads outside the cache.
#pragma once

#include "interface/append_kv_cache_arguments.h"

struct CachePlace {
  long long page;  // -1: nowhere
  int row;         // of the page
  int request;
};

// A new token as one of its request's: `left` are those from it to the request's last.
struct NewToken {
  int request;  // -1: of none
  int left;
};

// The last request whose tokens begin at or before `token`, by bisection: requests without tokens
// lie before it.
__device__ __forceinline__ NewToken
find_new_token(const attnjit::kernel_interface::NewTokenPlaces& places, int token) {
  if (places.new_offsets == nullptr)
    return {token / places.tokens_per_batch,
            places.tokens_per_batch - token % places.tokens_per_batch};
  int low = 0;
  int high = places.batch;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (places.new_offsets[middle] <= token) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const bool has_token =
      places.batch > 0 && places.new_offsets[low] <= token && token < places.new_offsets[low + 1];
  return has_token ? NewToken{low, places.new_offsets[low + 1] - token} : NewToken{-1, 0};
}

__device__ __forceinline__ long long load_slot(
    const attnjit::kernel_interface::NewTokenPlaces& places, int token) {
  return places.slot_bytes == 8 ? static_cast<const long long*>(places.slot_mapping)[token]
                                : static_cast<const int*>(places.slot_mapping)[token];
}

// In pages of `page_size` tokens. `token` is one of places.num_tokens.
template <int page_size>
__device__ __forceinline__ CachePlace
find_cache_place(const attnjit::kernel_interface::NewTokenPlaces& places, int token) {
  constexpr CachePlace nowhere = {-1, 0, 0};
  const NewToken at = find_new_token(places, token);
  if (at.request < 0)
    return nowhere;
  long long page;
  int row;
  if (places.slot_mapping != nullptr) {
    const long long slot = load_slot(places, token);
    page = slot < 0 ? -1 : slot / page_size;
    row = static_cast<int>(slot % page_size);
  } else {
    const long long position = static_cast<long long>(places.seq_lens[at.request]) - at.left;
    if (position < 0 || position / page_size >= places.block_table_columns)
      return nowhere;
    page = places.block_table[at.request * places.block_table_stride + position / page_size];
    row = static_cast<int>(position % page_size);
  }
  return page >= 0 && page < places.num_pages ? CachePlace{page, row, at.request} : nowhere;
}
