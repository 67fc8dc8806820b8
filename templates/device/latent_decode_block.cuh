// What the thread blocks of the kernels over a latent cache on sm_90 have in common: tiles of keys
// in boxes as tensor copies bring them, two consumer warpgroups, and a third that holds the
// producers.
#pragma once

#include "kernel_config.cuh"

#include "device/barrier_sm90.cuh"
#include "device/numeric_types.cuh"
#include "device/shared_address.cuh"
#include "device/tile_pages.cuh"

constexpr int box_columns = 64;  // 128 bytes: one swizzle span
constexpr int num_boxes = config::head_dim_qk / box_columns;
constexpr int num_value_boxes = config::head_dim_v / box_columns;
constexpr int box_elements = tile_tokens * box_columns;
constexpr int box_bytes = box_elements * 2;
constexpr int warpgroup_threads = 128;
constexpr int num_consumers = 2;
constexpr int consumer_threads = num_consumers * warpgroup_threads;
constexpr int num_threads = consumer_threads + warpgroup_threads;

static_assert(config::head_dim_qk % box_columns == 0 && config::head_dim_v % box_columns == 0,
              "heads are loaded in boxes of 64 columns");
static_assert(config::value_source == ValueSource::prefix_of_k, "V is read from the K tile");

// A consumer's thread.
struct Position {
  int consumer;
  int warp;  // of the warpgroup
  int lane;
};

// One arrival per warp: its lanes have no access of the shared memory left.
__device__ __forceinline__ void release(unsigned long long& barrier, const Position& at) {
  __syncwarp();
  if (at.lane == 0)
    arrive(shared_address(&barrier));
}

// All threads of one consumer: named barriers 1 and 2.
__device__ __forceinline__ void sync_consumer(int consumer) {
  sync_named_barrier<warpgroup_threads>(1 + consumer);
}

// The dynamic shared memory begins anywhere, boxes are aligned to the swizzle's 1024-byte pattern:
// rounds up, for which the host's plan has 1024 bytes to spare.
template <typename Storage>
__device__ __forceinline__ Storage& align_storage(unsigned char* shared_bytes) {
  static_assert(alignof(Storage) == 1024 && sizeof(Storage) + 1024 == config::shared_memory_bytes,
                "the host's shared-memory plan differs from the kernel's storage");
  const unsigned misalignment = shared_address(shared_bytes) % 1024;
  return *reinterpret_cast<Storage*>(shared_bytes + (misalignment > 0 ? 1024 - misalignment : 0));
}
