// Where the tiles of a part lie in a paged cache, looked up by one warp ahead of the copies: pages of
// 32 tiles at a time, one per lane, and the next request's while this one's tiles are on their way.
#pragma once

#include "kernel_config.cuh"

#include "device/decode_range.cuh"
#include "interface/paged_decode_arguments.h"

constexpr int tile_tokens = 64;

__device__ __forceinline__ DecodeRange
range_of(const attnjit::kernel_interface::PagedDecodeArguments& call,
         const attnjit::kernel_interface::SchedulePart& part, int request) {
  return decode_range(part, request, call.seq_lens, call.piece_offsets, tile_tokens);
}

__device__ __forceinline__ bool has_tiles(const DecodeRange& range) {
  return range.seqlen_kv > 0 && range.first_block < range.end_block;
}

// The page of tile `block` + lane. Does not wait for the sequence's length: what the table holds past
// its end is read, and never used.
__device__ __forceinline__ int find_pages(
    const attnjit::kernel_interface::PagedDecodeArguments& call, int request, int block, int lane) {
  const int column = (block + lane) * tile_tokens / config::page_size;
  return column < call.block_table_columns
             ? call.block_table[request * call.block_table_stride + column]
             : 0;
}

// Calls load(range, block, page) for every tile of the part, in order. All lanes of one warp.
template <typename Load>
__device__ __forceinline__ void for_each_tile(
    const attnjit::kernel_interface::PagedDecodeArguments& call,
    const attnjit::kernel_interface::SchedulePart& part, int lane, Load load) {
  const int end_request = end_request_of(part);
  if (part.first_request >= end_request)
    return;
  int pages = find_pages(call, part.first_request, part.first_block, lane);
  DecodeRange range = range_of(call, part, part.first_request);
  while (true) {
    const bool is_last = range.request + 1 == end_request;
    const int next_pages = is_last ? 0 : find_pages(call, range.request + 1, 0, lane);
    const DecodeRange next = is_last ? range : range_of(call, part, range.request + 1);
    for (int block = range.first_block; has_tiles(range) && block < range.end_block; ++block) {
      const int ahead = (block - range.first_block) % 32;
      if (ahead == 0 && block > range.first_block)
        pages = find_pages(call, range.request, block, lane);
      load(range, block, __shfl_sync(0xffffffffu, pages, ahead));
    }
    if (is_last)
      return;
    range = next;
    pages = next_pages;
  }
}
