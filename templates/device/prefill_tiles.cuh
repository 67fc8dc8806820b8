// Copies of kernels/prefill_sm80.cu from global to shared memory: query rows, and tiles of keys and
// values, contiguous or paged.
#pragma once

#include "device/async_copy.cuh"
#include "device/prefill_block.cuh"
#include "device/prefill_mask.cuh"

// Queries, then keys, then values; at the end the output takes their place. What follows from the
// thread block's place lies here too: registers are full of scores and outputs.
struct SharedStorage {
  alignas(16) Element elements[tile_elements > out_elements ? tile_elements : out_elements];
  PrefillWork work;
  VisibleTiles tiles;
};
static_assert(sizeof(SharedStorage) == config::shared_memory_bytes,
              "the host's shared-memory plan differs from SharedStorage");

// Where the keys or values of a request and kv head begin.
struct KeyRows {
  const Element* base;
  attnjit::kernel_interface::CacheStrides strides;
  const int* pages;  // of this request; unused unless paged

  __device__ __forceinline__ KeyRows(const attnjit::kernel_interface::PrefillArguments& arguments,
                                     const PrefillWork& work, const void* tensor,
                                     const attnjit::kernel_interface::CacheStrides& tensor_strides)
      : base(static_cast<const Element*>(tensor) + work.request * tensor_strides.batch +
             work.kv_head * tensor_strides.head + work.first_key * tensor_strides.row),
        strides(tensor_strides),
        pages(arguments.block_table + work.request * arguments.block_table_stride) {}

  // `token` must be one that the request has: only their pages are known.
  __device__ __forceinline__ const Element* row(int token) const {
    if constexpr (config::page_size > 0) {
      constexpr int size = config::page_size > 0 ? config::page_size : 1;
      return base + pages[token / size] * strides.block + token % size * strides.row;
    }
    return base + token * strides.row;
  }
};

// Starts copying tile `tile`: block_n rows of `columns` elements to rows of `pitch`. Keys that no
// row of the thread block may see become zeros without being read: they may be anything.
template <int columns, int pitch>
__device__ __forceinline__ void copy_tile(Element* destination, const KeyRows& rows,
                                          const VisibleTiles& tiles, int tile) {
  constexpr int chunks = columns / 8;
  constexpr int copies = config::block_n * chunks;
#pragma unroll 4
  for (int i = threadIdx.x; i < copies; i += num_threads) {
    const int row = i / chunks;
    const int column = i % chunks * 8;
    const int token = tile * config::block_n + row;
    const bool is_visible = token >= tiles.first_key && token < tiles.end_key;
    const Element* source = is_visible ? rows.row(token) + column : rows.base;
    copy_async_16(destination + row * pitch + column, source, is_visible);
  }
}

__device__ __forceinline__ void copy_keys(
    Element* destination, const attnjit::kernel_interface::PrefillArguments& arguments,
    const SharedStorage& shared, int tile) {
  const KeyRows rows(arguments, shared.work, arguments.k, arguments.k_strides);
  copy_tile<config::head_dim_qk, pitch_qk>(destination, rows, shared.tiles, tile);
}

__device__ __forceinline__ void copy_values(
    Element* destination, const attnjit::kernel_interface::PrefillArguments& arguments,
    const SharedStorage& shared, int tile) {
  const KeyRows rows(arguments, shared.work, arguments.v, arguments.v_strides);
  copy_tile<config::head_dim_v, pitch_v>(destination, rows, shared.tiles, tile);
}

__device__ __forceinline__ void copy_queries(
    SharedStorage& shared, const attnjit::kernel_interface::PrefillArguments& arguments,
    const PrefillWork& work) {
  constexpr int chunks = config::head_dim_qk / 8;
#pragma unroll 4
  for (int i = threadIdx.x; i < config::block_m * chunks; i += num_threads) {
    const int row = work.first_row + i / chunks;
    const bool is_row = row < work.num_rows;
    const int column = i % chunks * 8;
    const Element* source = static_cast<const Element*>(arguments.q);
    if (is_row)
      source += row_offset(arguments.q_strides, work, row) + column;
    copy_async_16(shared.elements + i / chunks * pitch_qk + column, source, is_row);
  }
}

// The columns of q and k past head_dim_qk are multiplied too: zero once, no copy touches them.
template <int padding>
__device__ __forceinline__ void clear_padding(SharedStorage& shared) {
  if constexpr (padding > 0) {
    constexpr int rows = config::block_m + config::block_n * (value_is_prefix ? 2 : 1);
    for (int i = threadIdx.x; i < rows * padding; i += num_threads)
      shared.elements[i / padding * pitch_qk + config::head_dim_qk + i % padding] = 0;
  }
}
