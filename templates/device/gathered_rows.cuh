// Rows of a tile that one warp copies out of a paged cache, 16 bytes a lane, to where a tensor copy
// with the 128-byte swizzle would put them: for pages that no tensor copy can bring. The copies are
// ordinary accesses of shared memory that wgmma reads by the async proxy: announce_copies orders
// them.
#pragma once

#include "device/async_copy.cuh"
#include "device/barrier_sm90.cuh"
#include "device/decode_range.cuh"
#include "device/latent_decode_block.cuh"
#include "device/tensor_copy_sm90.cuh"
#include "device/tile_pages.cuh"
#include "interface/paged_decode_arguments.h"

// Eight lanes read the 128 bytes of a row of a box: neighbours read neighbouring bytes.
constexpr int lanes_per_row = 8;
constexpr int rows_at_once = 32 / lanes_per_row;
constexpr int row_groups = 32 / rows_at_once;
constexpr int box_row_bytes = box_columns * 2;

struct GatheredRows {
  const Element* source;    // of the row that this lane looked up
  bool is_looked_up_valid;  // whether that may be read
  unsigned valid;           // bit i * rows_at_once: whether the i-th row that it copies may be
  unsigned destination;     // of the first of these, from a box's begin
};

// `page` is that of the row that the lane looked up (find_row_page). Rows past the sequence's end
// or before the window of all `queries`, and rows without a page are not read.
__device__ __forceinline__ GatheredRows
gather_rows(const attnjit::kernel_interface::PagedDecodeArguments& call, const DecodeRange& range,
            const QueryRange& queries, int block, int page, int warp, int lane) {
  const unsigned token = static_cast<unsigned>(block) * tile_tokens + looked_up_row(warp, lane);
  bool valid = page >= 0 && token < static_cast<unsigned>(range.seqlen_kv);
  if constexpr (has_window) {
    const int first_key = visible_keys(range.seqlen_kv, call.seqlen_q, queries.first).begin;
    valid = valid && token >= static_cast<unsigned>(first_key);
  }
  const long long row =
      page * call.k_strides.block + token % config::page_size * call.k_strides.row;
  const int first_row = lane / lanes_per_row;
  const int chunk = lane % lanes_per_row;
  GatheredRows rows;
  rows.source = static_cast<const Element*>(call.k_cache) + range.request * call.k_strides.batch +
                blockIdx.y * call.k_strides.head + row;
  rows.is_looked_up_valid = valid;
  rows.valid = __ballot_sync(0xffffffffu, valid) >> first_row;
  rows.destination = looked_up_row(warp, first_row) * box_row_bytes + (chunk ^ first_row) * 16;
  return rows;
}

// Asks L2 for the row that this lane looked up.
__device__ __forceinline__ void prefetch_row(const GatheredRows& rows) {
  if (rows.is_looked_up_valid)
    prefetch_bytes(rows.source, config::head_dim_qk * 2);
}

// Where a tile's boxes begin in shared memory, aligned to the swizzle's pattern, and at which
// column of the cache's rows.
struct BoxPlaces {
  unsigned addresses[num_boxes];
  int columns[num_boxes];
};

// Starts copying four of the warp's 32 rows, the i-th four, all boxes of them: what lies together
// in the cache is read together. Box by box, memory was half as fast on an H200.
__device__ __forceinline__ void copy_rows(const GatheredRows& rows, const BoxPlaces& boxes, int i,
                                          int lane) {
  // Rows 4 to 7 of every eight have bit 2 set, which the swizzle adds to the chunk's number.
  const unsigned destination = (rows.destination ^ i % 2 * 64) + i * rows_at_once * box_row_bytes;
  const auto* source = reinterpret_cast<const Element*>(
      __shfl_sync(0xffffffffu, reinterpret_cast<unsigned long long>(rows.source),
                  i * rows_at_once + lane / lanes_per_row));
  const bool valid = rows.valid >> i * rows_at_once & 1;
#pragma unroll
  for (int box = 0; box < num_boxes; ++box) {
    copy_async_16(boxes.addresses[box] + destination,
                  source + boxes.columns[box] + lane % lanes_per_row * 8, valid);
  }
}

// Waits for this warp's copies and arrives for it at `num_barriers` barriers from `barriers` on:
// what was copied may be read by wgmma.
template <int num_barriers>
__device__ __forceinline__ void announce_copies(unsigned barriers, int lane) {
  commit_copies();
  wait_for_copies<0>();
  fence_proxy_async();
  __syncwarp();  // every lane's copies are complete and fenced
  if (lane < num_barriers)
    arrive(barriers + lane * 8);
}
