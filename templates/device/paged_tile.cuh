// Copies a tile of consecutive tokens of one request and kv head out of a paged cache.
#pragma once

#include "device/async_copy.cuh"
#include "device/numeric_types.cuh"
#include "interface/paged_decode_arguments.h"

// Row pitch in elements: at least `columns`, and an odd number of 16-byte units, so that the eight
// rows of an ldmatrix fall into different banks.
constexpr int odd_pitch(int columns) {
  return ((columns + 7) / 8 | 1) * 8;
}

struct PagedTile {
  const int* pages;  // shared memory: physical page of each token, -1 = past the end
  int first_token;
  int request;
  int kv_head;

  // Starts copying `num_tokens` rows of `columns` elements to rows of `pitch` elements; tokens past
  // the end become zeros without being read. All `num_threads` threads take part.
  template <int num_tokens, int columns, int pitch, int page_size, int num_threads>
  __device__ __forceinline__ void copy(
      Element* destination, const void* cache,
      const attnjit::kernel_interface::CacheStrides& strides) const {
    constexpr int chunks = columns / 8;
    const Element* base =
        static_cast<const Element*>(cache) + request * strides.batch + kv_head * strides.head;
    // Unrolled, its addresses take the registers that a large tile's accumulators need.
#pragma unroll 1
    for (int i = threadIdx.x; i < num_tokens * chunks; i += num_threads) {
      const int token = i / chunks;
      const int column = i % chunks * 8;
      const int page = pages[token];
      const bool valid = page >= 0;
      const Element* source = base + (valid ? page : 0) * strides.block +
                              (first_token + token) % page_size * strides.row + column;
      copy_async_16(destination + token * pitch + column, source, valid);
    }
  }
};
