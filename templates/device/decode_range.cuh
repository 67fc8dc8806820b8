// A part's share of one request: which of its KV blocks, and where the result goes.
#pragma once

#include "kernel_config.cuh"

#include "device/visible_keys.cuh"
#include "interface/decode_schedule.h"

struct DecodeRange {
  int request;
  int seqlen_kv;
  int first_block;
  int end_block;
  int piece;  // of the partial results; -1: the request has no other pieces, write the output
};

// The request after the last one of `part`.
__device__ __forceinline__ int end_request_of(const attnjit::kernel_interface::SchedulePart& part) {
  return part.end_block > 0 ? part.end_request + 1 : part.end_request;
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

// What `part` computes of `request`, with the lengths of now: the schedule only balances, lengths
// that changed since it was made still give right results. Its blocks count from the first that is
// visible now.
__device__ __forceinline__ DecodeRange
decode_range(const attnjit::kernel_interface::SchedulePart& part, int request, const int* seq_lens,
             const int* piece_offsets, const QueryRange& queries, int seqlen_q, int block_n) {
  using namespace attnjit::kernel_interface;
  DecodeRange range;
  range.request = request;
  range.seqlen_kv = seq_lens[request];
  const int hidden_blocks =
      first_visible_key(range.seqlen_kv, seqlen_q, config::window_left) / block_n;
  const int blocks = num_kv_blocks(range.seqlen_kv - hidden_blocks * block_n, block_n);
  const bool is_first = request == part.first_request;
  const bool is_end = request == part.end_request;
  range.first_block = hidden_blocks + (is_first ? part.first_block : 0);
  range.end_block = hidden_blocks + (is_end && part.end_block < blocks ? part.end_block : blocks);
  if constexpr (has_window) {
    const int first_key = visible_keys(range.seqlen_kv, seqlen_q, queries.first).begin;
    const int end_key = visible_keys(range.seqlen_kv, seqlen_q, queries.last).end;
    range.first_block = max(range.first_block, first_key / block_n);
    range.end_block = min(range.end_block, end_key > 0 ? (end_key - 1) / block_n + 1 : 0);
  }
  const int first_piece = piece_offsets[request];
  const bool is_split = piece_offsets[request + 1] > first_piece;
  range.piece = is_split ? first_piece + (is_first ? part.first_piece : 0) : -1;
  return range;
}
