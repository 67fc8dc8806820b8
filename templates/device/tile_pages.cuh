// Where the tiles of a part lie in a paged cache, looked up by one warp ahead of the copies: 32
// pages at a time, one per lane, and the next range's while this one's tiles are on their way.
// Where rows are gathered, the page of every row that the warp copies, a tile ahead.
#pragma once

#include "kernel_config.cuh"

#include "device/decode_range.cuh"
#include "interface/paged_decode_arguments.h"

constexpr int tile_tokens = 64;
constexpr bool gathers_rows = config::kv_copy == KvCopy::gather;
// A tile lies within one page, or is made of several; gathered rows lie anywhere.
constexpr int pages_per_tile =
    !gathers_rows && config::page_size < tile_tokens ? tile_tokens / config::page_size : 1;
constexpr int page_tokens = tile_tokens / pages_per_tile;  // of a tile, in one page
static_assert(gathers_rows || (config::page_size % page_tokens == 0 && page_tokens % 8 == 0),
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

// Gathering warps take a request's tiles in turn, two warps a tile, a lane per row.
constexpr int tiles_in_turn = 2;

__device__ __forceinline__ int tile_in_turn(int warp) {
  return warp / 2;
}

// Of the row that a lane looks up, in its tile.
__device__ __forceinline__ int looked_up_row(int warp, int lane) {
  return warp % 2 * 32 + lane;
}

// The page of the row that a lane looks up in tile `block`; -1 past the table. Does not wait for
// the sequence's length, either. Unsigned: past the end, tokens may be more than an int holds.
__device__ __forceinline__ int find_row_page(
    const attnjit::kernel_interface::PagedDecodeArguments& call, int request, int block, int warp,
    int lane) {
  const unsigned token = static_cast<unsigned>(block) * tile_tokens + looked_up_row(warp, lane);
  const unsigned column = token / config::page_size;
  return column < static_cast<unsigned>(call.block_table_columns)
             ? call.block_table[request * call.block_table_stride + column]
             : -1;
}

// What a lane looks up for a request's tiles from `block` on: of the first of them that its warp
// copies.
__device__ __forceinline__ int look_up(const attnjit::kernel_interface::PagedDecodeArguments& call,
                                       int request, int block, int warp, int lane) {
  if constexpr (gathers_rows)
    return find_row_page(call, request, block + tile_in_turn(warp), warp, lane);
  return find_pages(call, request, block, lane);
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
// i-th page, and copies it. Where rows are gathered, every lane has the page of the row that it
// looks up, in the warp's own tiles. All lanes of one warp. Where a window begins, only the length
// says: then a range's first pages are looked up after it, else before.
template <typename GoOn, typename Load>
__device__ __forceinline__ void for_each_tile(
    const attnjit::kernel_interface::PagedDecodeArguments& call,
    const attnjit::kernel_interface::SchedulePart& part, const QueryRange& queries, int warp,
    int lane, GoOn go_on, Load load) {
  const int end_request = end_request_of(part);
  if (part.first_request >= end_request)
    return;
  int pages = look_up(call, part.first_request, part.first_block, warp, lane);
  DecodeRange range = range_of(call, part, queries, first_index(part));
  if constexpr (has_window)
    pages = look_up(call, range.request, range.first_block, warp, lane);
  while (true) {
    const RangeIndex after = index_after(range);
    const bool is_last = after.request == end_request;
    const int next_block = has_chunks ? after.chunk * chunk_blocks : 0;
    int next_pages = is_last ? 0 : look_up(call, after.request, next_block, warp, lane);
    const DecodeRange next = is_last ? range : range_of(call, part, queries, after);
    if constexpr (has_window) {
      if (!is_last)
        next_pages = look_up(call, after.request, next.first_block, warp, lane);
    }
    for (int block = range.first_block; has_tiles(range) && block < range.end_block; ++block) {
      const int ahead = (block - range.first_block) % (32 / pages_per_tile);
      if constexpr (gathers_rows) {
        const int page = pages;
        if (ahead % tiles_in_turn == tile_in_turn(warp))
          pages = find_row_page(call, range.request, block + tiles_in_turn, warp, lane);
        load(range, block, page);
      } else {
        if (ahead == 0 && block > range.first_block)
          pages = find_pages(call, range.request, block, lane);
        load(range, block,
             __shfl_sync(0xffffffffu, pages, ahead * pages_per_tile + lane % pages_per_tile));
      }
    }
    if (is_last)
      return;
    range = next;
    pages = next_pages;
    go_on(range.request);
  }
}
