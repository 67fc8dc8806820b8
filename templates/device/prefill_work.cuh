// What a thread block of kernels/prefill_sm80.cu computes: the request and rows of its row tile,
// and the places of their queries among the request's keys.
#pragma once

#include "kernel_config.cuh"

#include "interface/prefill_arguments.h"

struct PrefillWork {
  int request;
  int kv_head;
  int first_row;  // of seqlen_q * q_per_kv rows of a kv head, packed query-major
  int num_rows;   // all of them
  int seqlen_q;
  int seqlen_kv;
  long long first_query;  // row of q, out and lse, where they are ragged
  long long first_key;    // row of k and v, where they are ragged
  int query_place;        // query i stands where key i + query_place does
  int key_position;       // of the first key
};

struct TokenRange {
  long long first;  // row; 0 of a dense tensor
  int count;
};

// The tokens of `request`; lengths in device memory never reach past the memory they count.
__device__ __forceinline__ TokenRange
tokens_of(const attnjit::kernel_interface::RequestTokens& tokens, int request) {
  TokenRange range = {0, tokens.extent};
  if (tokens.offsets != nullptr) {
    range.first = tokens.offsets[request];
    range.count = tokens.offsets[request + 1] - tokens.offsets[request];
  }
  if (tokens.lengths != nullptr)
    range.count = min(range.count, tokens.lengths[request]);
  return range;
}

// The last request whose first row tile is not past `tile`: a search of 32 places at a time by each
// warp.
__device__ __forceinline__ int find_request(const int* q_offsets, int batch, int tile) {
  using attnjit::kernel_interface::first_row_tile;
  int first = 0;
  int count = batch;
  while (count > 1) {
    const int step = (count + 31) / 32;
    const int place = static_cast<int>(threadIdx.x % 32) * step;
    const int request = first + place;
    const bool is_reached =
        place < count &&
        first_row_tile(static_cast<long long>(q_offsets[request]) * config::q_per_kv,
                       config::block_m, request) <= tile;
    const int reached = max(__popc(__ballot_sync(0xffffffffu, is_reached)) - 1, 0);
    first += reached * step;
    count = min(step, count - reached * step);
  }
  return first;
}

// Of row tile `tile` of the call. It may lie outside the request's rows: nothing to do.
__device__ __forceinline__ PrefillWork
find_work(const attnjit::kernel_interface::PrefillArguments& arguments, int tile, int kv_head) {
  PrefillWork work;
  int first_tile;
  if (arguments.queries.offsets != nullptr) {
    work.request = find_request(arguments.queries.offsets, arguments.batch, tile);
    first_tile = static_cast<int>(attnjit::kernel_interface::first_row_tile(
        static_cast<long long>(arguments.queries.offsets[work.request]) * config::q_per_kv,
        config::block_m, work.request));
  } else {
    const int tiles =
        (arguments.queries.extent * config::q_per_kv + config::block_m - 1) / config::block_m;
    work.request = tile / tiles;
    first_tile = work.request * tiles;
  }
  const TokenRange queries = tokens_of(arguments.queries, work.request);
  const TokenRange keys = tokens_of(arguments.keys, work.request);
  work.kv_head = kv_head;
  work.first_row = (tile - first_tile) * config::block_m;
  work.num_rows = queries.count * config::q_per_kv;
  work.seqlen_q = queries.count;
  work.seqlen_kv = max(keys.count, 0);
  work.first_query = queries.first;
  work.first_key = keys.first;
  work.key_position =
      arguments.key_positions != nullptr ? arguments.key_positions[work.request] : 0;
  const int end_position =
      arguments.rope_extent > 0 ? arguments.rope_extent : work.key_position + work.seqlen_kv;
  const int query_position = arguments.query_positions != nullptr
                                 ? arguments.query_positions[work.request]
                                 : end_position - work.seqlen_q;
  work.query_place = query_position - work.key_position;
  // The rows of k and v may be more than the sequence has keys: whole pages of them. No key is read
  // whose rope lies outside its tensor.
  if constexpr (config::head_dim_rope > 0) {
    const int last_places =
        min(work.query_place + work.seqlen_q, arguments.rope_extent - work.key_position);
    work.seqlen_kv = work.key_position < 0 ? 0 : max(min(work.seqlen_kv, last_places), 0);
  }
  return work;
}

__device__ __forceinline__ int query_of(int row) {
  return row / config::q_per_kv;
}

__device__ __forceinline__ int head_of(const PrefillWork& work, int row) {
  return work.kv_head * config::q_per_kv + row % config::q_per_kv;
}

// Of a row in q, out or lse.
__device__ __forceinline__ long long row_offset(
    const attnjit::kernel_interface::QueryStrides& strides, const PrefillWork& work, int row) {
  return work.request * strides.batch + (work.first_query + query_of(row)) * strides.token +
         head_of(work, row) * strides.head;
}
