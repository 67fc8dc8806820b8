// A thread block of kernels/seesaw_decode_sm90.cu: the sizes that follow from its config, and its
// shared memory. Two KV tiles are in use at a time, one per consumer warpgroup; each consumer holds
// one half of the output's columns for all 64 rows.
#pragma once

#include "device/latent_decode_block.cuh"

constexpr int block_rows = 64;                           // M of both products
constexpr int half_columns = config::head_dim_v / 2;     // of the output, one consumer's
constexpr int quarter_columns = config::head_dim_v / 4;  // a tile is loaded and released by these
constexpr int quarter_boxes = quarter_columns / box_columns;

static_assert(quarter_columns % box_columns == 0, "a product multiplies whole boxes of V");
static_assert(num_boxes > num_value_boxes,
              "probabilities take the place of a box that is no part of V");

// The rows of a block are a tile of those of its kv head.
__device__ __forceinline__ QueryRange
queries_of_block(const attnjit::kernel_interface::PagedDecodeArguments& call) {
  const int first_row = blockIdx.x * block_rows;
  return queries_of_rows(first_row, min(first_row + block_rows, call.seqlen_q * config::q_per_kv));
}

// A tile is loaded and released by quarters of V, two per consumer. The boxes that are no part of V
// go with the last quarter of the consumer that reads this tile's probabilities, which lie in one
// of them, from shared memory: the other one.
__device__ constexpr bool quarter_has_others(int tile, int quarter) {
  return quarter == (1 - tile) * 2 + 1;
}

struct BlockBarriers {
  unsigned long long full[num_consumers][4];   // [tile][quarter]
  unsigned long long empty[num_consumers][4];  // [tile][quarter]
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

// The box of tile `tile` that its probabilities replace: [row, token], K-major, swizzled.
__device__ __forceinline__ Element* probabilities_of(SharedStorage& shared, int tile) {
  return shared.kv[tile][num_value_boxes];
}
