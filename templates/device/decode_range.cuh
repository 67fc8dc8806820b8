// A part's share of one request: which of its KV blocks, and where the result goes.
#pragma once

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

// What `part` computes of `request`, with the lengths of now: the schedule only balances, lengths
// that changed since it was made still give right results.
__device__ __forceinline__ DecodeRange
decode_range(const attnjit::kernel_interface::SchedulePart& part, int request, const int* seq_lens,
             const int* piece_offsets, int block_n) {
  DecodeRange range;
  range.request = request;
  range.seqlen_kv = seq_lens[request];
  const int blocks = attnjit::kernel_interface::num_kv_blocks(range.seqlen_kv, block_n);
  const bool is_first = request == part.first_request;
  const bool is_end = request == part.end_request;
  range.first_block = is_first ? part.first_block : 0;
  range.end_block = is_end && part.end_block < blocks ? part.end_block : blocks;
  const int first_piece = piece_offsets[request];
  const bool is_split = piece_offsets[request + 1] > first_piece;
  range.piece = is_split ? first_piece + (is_first ? part.first_piece : 0) : -1;
  return range;
}
