// A part's share of one request: which of its KV blocks, and where the result goes.
#pragma once

#include "kernel_config.cuh"

#include "device/visible_keys.cuh"
#include "interface/decode_schedule.h"

// Whether requests are cut into chunks, each a piece: interface/chunk_schedule.h. A part may then
// have several pieces of one request, and computes each from scratch.
constexpr bool has_chunks = config::chunk_blocks > 0;
constexpr int chunk_blocks = has_chunks ? config::chunk_blocks : 1;

// What a part computes at a time: a request, or a chunk of one.
struct RangeIndex {
  int request;
  int chunk;  // 0 unless requests are cut into chunks
};

struct DecodeRange {
  int request;
  int seqlen_kv;
  int first_block;
  int end_block;
  int piece;  // of the partial results; -1: the request has no other pieces, write the output
  int chunk;
  int end_chunk;  // of the part's chunks of this request
};

// The request after the last one of `part`.
__device__ __forceinline__ int end_request_of(const attnjit::kernel_interface::SchedulePart& part) {
  return part.end_block > 0 ? part.end_request + 1 : part.end_request;
}

__device__ __forceinline__ RangeIndex
first_index(const attnjit::kernel_interface::SchedulePart& part) {
  return {part.first_request, has_chunks ? part.first_piece : 0};
}

__device__ __forceinline__ RangeIndex index_after(const DecodeRange& range) {
  if (has_chunks && range.chunk + 1 < range.end_chunk)
    return {range.request, range.chunk + 1};
  return {range.request + 1, 0};
}

// Narrows `range` from its whole request to a chunk. The request's last chunk takes what is left.
__device__ __forceinline__ void take_chunk(const attnjit::kernel_interface::SchedulePart& part,
                                           const RangeIndex& at, const int* piece_offsets,
                                           DecodeRange& range) {
  const int first_piece = piece_offsets[at.request];
  const int end_piece = piece_offsets[at.request + 1];
  const bool is_split = end_piece > first_piece;
  const int num_chunks = is_split ? end_piece - first_piece : 1;
  const bool is_cut = at.request == part.end_request && part.end_block > 0;
  range.chunk = at.chunk;
  range.end_chunk = is_cut ? part.end_block / chunk_blocks : num_chunks;
  range.first_block = at.chunk * chunk_blocks;
  if (at.chunk + 1 < num_chunks)
    range.end_block = min(range.end_block, range.first_block + chunk_blocks);
  range.piece = is_split ? first_piece + at.chunk : -1;
}

// The queries that the rows of a thread block belong to.
struct QueryRange {
  int first;
  int last;
};

// Of rows [first_row, end_row) of a kv head; rows are packed query-major.
__device__ __forceinline__ QueryRange queries_of_rows(int first_row, int end_row) {
  return {first_row / config::q_per_kv, (end_row - 1) / config::q_per_kv};
}

// From blocks counted from a request's first visible one to blocks of the sequence, without those
// that a window hides from all of `queries`; the range may become empty.
__device__ __forceinline__ void take_visible_blocks(const QueryRange& queries, int seqlen_q,
                                                    int hidden_blocks, int block_n,
                                                    DecodeRange& range) {
  const int first_key = visible_keys(range.seqlen_kv, seqlen_q, queries.first).begin;
  const int end_key = visible_keys(range.seqlen_kv, seqlen_q, queries.last).end;
  const int end_block = end_key > 0 ? (end_key - 1) / block_n + 1 : 0;
  range.first_block = max(range.first_block + hidden_blocks, first_key / block_n);
  range.end_block = min(range.end_block + hidden_blocks, end_block);
}

// What `part` computes at `at`, with the lengths of now: the schedule only balances, lengths that
// changed since it was made still give right results. Its blocks count from the first that is
// visible now.
__device__ __forceinline__ DecodeRange decode_range(
    const attnjit::kernel_interface::SchedulePart& part, const RangeIndex& at, const int* seq_lens,
    const int* piece_offsets, const QueryRange& queries, int seqlen_q, int block_n) {
  using namespace attnjit::kernel_interface;
  DecodeRange range;
  range.request = at.request;
  range.seqlen_kv = seq_lens[at.request];
  const int hidden_blocks =
      first_visible_key(range.seqlen_kv, seqlen_q, config::window_left) / block_n;
  const int blocks = num_kv_blocks(range.seqlen_kv - hidden_blocks * block_n, block_n);
  if constexpr (has_chunks) {
    range.end_block = blocks;
    take_chunk(part, at, piece_offsets, range);
  } else {
    const bool is_first = at.request == part.first_request;
    const bool is_end = at.request == part.end_request;
    range.first_block = is_first ? part.first_block : 0;
    range.end_block = is_end && part.end_block < blocks ? part.end_block : blocks;
    const int first_piece = piece_offsets[at.request];
    const bool is_split = piece_offsets[at.request + 1] > first_piece;
    range.piece = is_split ? first_piece + (is_first ? part.first_piece : 0) : -1;
  }
  if constexpr (has_window)
    take_visible_blocks(queries, seqlen_q, hidden_blocks, block_n, range);
  return range;
}
