// A thread block of kernels/seesaw_decode_sm90.cu: the sizes that follow from its config, and its
// shared memory. Two KV tiles are in use at a time, one per consumer warpgroup; each consumer holds
// one half of the output's columns for all 64 rows.
#pragma once

#include "kernel_config.cuh"

#include "device/numeric_types.cuh"
#include "device/tile_pages.cuh"

constexpr int box_columns = 64;  // 128 bytes: one swizzle span
constexpr int block_rows = 64;   // M of both products
constexpr int num_boxes = config::head_dim_qk / box_columns;
constexpr int half_columns = config::head_dim_v / 2;  // of the output, N of the second product
constexpr int half_boxes = half_columns / box_columns;
constexpr int other_boxes = num_boxes - 2 * half_boxes;  // that are no part of V
constexpr int box_elements = tile_tokens * box_columns;
constexpr int box_bytes = box_elements * 2;
constexpr int warpgroup_threads = 128;
constexpr int num_consumers = 2;
constexpr int consumer_threads = num_consumers * warpgroup_threads;
constexpr int num_threads = consumer_threads + warpgroup_threads;

static_assert(config::head_dim_qk % box_columns == 0, "heads are loaded in boxes of 64 columns");
static_assert(half_columns % box_columns == 0 && half_columns <= 256,
              "each consumer multiplies whole boxes of V, N at most 256");
static_assert(other_boxes >= 1, "probabilities take the place of a box that is no part of V");
static_assert(config::page_size % tile_tokens == 0, "a tile lies within one page");
static_assert(config::value_source == ValueSource::prefix_of_k, "V is read from the K tile");

// A tile is released by halves, those of the output's columns. The boxes that are no part of V go
// with the half of the consumer that reads this tile's probabilities, which lie in one of them.
__device__ constexpr int half_with_others(int tile) {
  return 1 - tile;
}

// The boxes of a half: [first, first + half_boxes), and the others where they go with it.
__device__ constexpr int boxes_of_half(int tile, int half) {
  return half_boxes + (half == half_with_others(tile) ? other_boxes : 0);
}

__device__ constexpr int box_of_half(int half, int i) {
  return i < half_boxes ? half * half_boxes + i : 2 * half_boxes + i - half_boxes;
}

struct BlockBarriers {
  unsigned long long full[num_consumers][2];   // [tile][half]
  unsigned long long empty[num_consumers][2];  // [tile][half]
  unsigned long long q_full;
  unsigned long long q_empty;
};

// Boxes are aligned to the swizzle's 1024-byte pattern.
struct SharedStorage {
  alignas(1024) Element kv[num_consumers][num_boxes][box_elements];
  alignas(1024) Element q[num_boxes][block_rows * box_columns];
  float maxima[num_consumers][block_rows];  // running, after each consumer's tile
  float sums[num_consumers][block_rows];
  BlockBarriers barriers;
};
// The dynamic shared memory begins anywhere: the kernel rounds up to 1024.
static_assert(sizeof(SharedStorage) + 1024 == config::shared_memory_bytes,
              "the host's shared-memory plan differs from SharedStorage");

// The box of tile `tile` that its probabilities replace: [row, token], K-major, swizzled.
__device__ __forceinline__ Element* probabilities_of(SharedStorage& shared, int tile) {
  return shared.kv[tile][2 * half_boxes];
}
