// A thread block of kernels/swapped_decode_sm90.cu: the sizes that follow from its config, and its
// shared memory. The consumer warpgroups take a request's tiles in turn, each with its own ring of
// boxes, so that one computes while the other's tile is on its way.
#pragma once

#include "device/latent_decode_block.cuh"

constexpr int rows = config::block_rows;  // query rows, N of both products
constexpr int row_tiles = rows / 8;

static_assert(rows % 8 == 0 && rows <= 64, "rows are N of wgmma");
static_assert(config::ring_boxes >= num_boxes && config::ring_boxes < 2 * num_boxes,
              "a ring holds one tile and part of the next");

// Each consumer finishes its share of the output's columns, all rows.
constexpr int boxes_per_consumer = num_value_boxes / num_consumers;
static_assert(num_value_boxes % num_consumers == 0, "consumers share whole boxes of V");

// Boxes of a tile lie in the ring in the order in which the consumer is done with them: those that
// are no part of V first, then those of the columns that it finishes.
__device__ constexpr int box_at(int position, int consumer) {
  constexpr int others = num_boxes - num_value_boxes;
  return position < others ? num_value_boxes + position
                           : (position - others + consumer * boxes_per_consumer) % num_value_boxes;
}

// A block has all rows of its kv head.
__device__ __forceinline__ QueryRange
queries_of_block(const attnjit::kernel_interface::PagedDecodeArguments& call) {
  return {0, call.seqlen_q - 1};
}

// Where a tile begins in a consumer's ring of boxes.
struct RingPosition {
  int first = 0;
  int tile = 0;         // counted over the kernel's life
  unsigned parity = 0;  // of `first`'s current use

  // The ring's slot of the box at `position` of the tile.
  __device__ __forceinline__ int slot(int position) const {
    // A tile that fills the ring always begins at 0: let the compiler see it.
    const int index = config::ring_boxes == num_boxes ? position : first + position;
    return index < config::ring_boxes ? index : index - config::ring_boxes;
  }

  __device__ __forceinline__ unsigned parity_of(int position) const {
    return first + position < config::ring_boxes ? parity : parity ^ 1;
  }

  __device__ __forceinline__ void advance() {
    parity = parity_of(num_boxes);
    first = slot(num_boxes);
    ++tile;
  }
};

// Of one consumer. Boxes are aligned to the swizzle's 1024-byte pattern.
struct ConsumerStorage {
  alignas(1024) Element kv[config::ring_boxes][box_elements];
  alignas(1024) Element p[rows * tile_tokens];  // probabilities, [row, token], swizzled
};

// A request's query rows; the next request's are loaded while this one's are in use.
constexpr int query_stages = 2;
struct QueryStorage {
  alignas(1024) Element boxes[num_boxes][rows * box_columns];
};

// What a consumer hands to the other at a request's end: the columns that the other finishes, as
// accumulators of the thread at the same place, and each row's maximum and sum.
struct MergeStorage {
  float4 out[boxes_per_consumer * row_tiles][warpgroup_threads];
  float maximum[rows];
  float sum[rows];
};

// Of the four warps of one consumer: maxima of a tile, then sums.
using ColumnParts = float[4][rows];

struct ConsumerBarriers {
  unsigned long long tile_full[2];  // of even and odd tiles
  unsigned long long box_empty[config::ring_boxes];
};

struct QueryBarriers {
  unsigned long long full[query_stages];
  unsigned long long empty[query_stages];
};

struct SharedStorage {
  ConsumerStorage consumers[num_consumers];
  QueryStorage queries[query_stages];
  MergeStorage merge[num_consumers];
  alignas(16) ColumnParts column_parts[num_consumers];
  ConsumerBarriers barriers[num_consumers];
  QueryBarriers query_barriers;
};
