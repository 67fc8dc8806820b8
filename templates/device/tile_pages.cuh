// Where the tiles of a part lie in a paged cache, looked up by one warp ahead of the copies: 32
// pages at a time, one per lane, and the next range's while this one's tiles are on their way.
#pragma once

#include "kernel_config.cuh"

#include "device/decode_range.cuh"
#include "interface/paged_decode_arguments.h"

constexpr int tile_tokens = 64;
// A tile lies within one page, or is made of several.
constexpr int pages_per_tile =
    config::page_size < tile_tokens ? tile_tokens / config::page_size : 1;
constexpr int page_tokens = tile_tokens / pages_per_tile;  // of a tile, in one page
static_assert(config::page_size % page_tokens == 0 && page_tokens % 8 == 0,
              "tiles are made of whole pages of at least one swizzle pattern, or pages of tiles");

constexpr int tiles_per_page =
    config::page_size < tile_tokens ? 1 : config::page_size / tile_tokens;

__device__ __forceinline__ DecodeRange
range_of(const attnjit::kernel_interface::PagedDecodeArguments& call,
         const attnjit::kernel_interface::SchedulePart& part, const QueryRange& queries,
         const RangeIndex& at) {
  return decode_range(part, at, call.seq_lens, call.piece_offsets, queries, call.seqlen_q,
                      tile_tokens);
}

__device__ __forceinline__ bool has_tiles(const DecodeRange& range) {
  return range.seqlen_kv > 0 && range.first_block < range.end_block;
}

// The page that a lane keeps: of tile `block` + lane or, where a tile is several pages, the lane-th
// from tile `block` on. Does not wait for the sequence's length: what the table holds past its end
// is read, and never used. Counts tiles, not tokens, whose number could overflow.
__device__ __forceinline__ int find_pages(
    const attnjit::kernel_interface::PagedDecodeArguments& call, int request, int block, int lane) {
  const int column =
      pages_per_tile > 1 ? block * pages_per_tile + lane : (block + lane) / tiles_per_page;
  return column < call.block_table_columns
             ? call.block_table[request * call.block_table_stride + column]
             : 0;
}

// Whether what a call reads should leave L2 first. A short call, which reads a few times L2 at
// most, then does not wait until others' data is written back; a long one gets slower. Measured on
// an H200 with 16 heads, beside evict-unchanged: 4 % faster at 150 MB, 5 % slower at 600 MB.
__device__ __forceinline__ bool is_short(
    const attnjit::kernel_interface::PagedDecodeArguments& call,
    const attnjit::kernel_interface::SchedulePart& part) {
  constexpr long long most_bytes = 160 << 20;
  constexpr int tile_bytes = tile_tokens * config::head_dim_qk * 2;
  return static_cast<long long>(part.call_blocks) * call.num_kv_heads * tile_bytes <= most_bytes;
}

// Calls load(range, block, page) for every tile of the part, in order, and go_on(request) between
// the tiles of one request or chunk and the next; lane i of the first pages_per_tile has the tile's
// i-th page, and copies it. All lanes of one warp. Where a window begins, only the length says:
// then a range's first pages are looked up after it, else before.
template <typename GoOn, typename Load>
__device__ __forceinline__ void for_each_tile(
    const attnjit::kernel_interface::PagedDecodeArguments& call,
    const attnjit::kernel_interface::SchedulePart& part, const QueryRange& queries, int lane,
    GoOn go_on, Load load) {
  const int end_request = end_request_of(part);
  if (part.first_request >= end_request)
    return;
  int pages = find_pages(call, part.first_request, part.first_block, lane);
  DecodeRange range = range_of(call, part, queries, first_index(part));
  if constexpr (has_window)
    pages = find_pages(call, range.request, range.first_block, lane);
  while (true) {
    const RangeIndex after = index_after(range);
    const bool is_last = after.request == end_request;
    const int next_block = has_chunks ? after.chunk * chunk_blocks : 0;
    int next_pages = is_last ? 0 : find_pages(call, after.request, next_block, lane);
    const DecodeRange next = is_last ? range : range_of(call, part, queries, after);
    if constexpr (has_window) {
      if (!is_last)
        next_pages = find_pages(call, after.request, next.first_block, lane);
    }
    for (int block = range.first_block; has_tiles(range) && block < range.end_block; ++block) {
      const int ahead = (block - range.first_block) % (32 / pages_per_tile);
      if (ahead == 0 && block > range.first_block)
        pages = find_pages(call, range.request, block, lane);
      load(range, block,
           __shfl_sync(0xffffffffu, pages, ahead * pages_per_tile + lane % pages_per_tile));
    }
    if (is_last)
      return;
    range = next;
    pages = next_pages;
    go_on(range.request);
  }
}
