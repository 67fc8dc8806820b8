// Arguments of kernels/sparse_mla_sm80.cu, passed by value, and where tokens lie. Built-in types
// only: read by the host compiler and by NVRTC.
#pragma once

#include "interface/paged_decode_arguments.h"

namespace attnjit::kernel_interface {

// Tokens in pages, or, of pages of one token, in rows. Strides are in bytes. Token t is the
// (t % page_size)-th of page t / page_size.
struct TokenPool {
  const void* data;
  long long page_stride;
  long long row_stride;  // within a page
  long long num_tokens;  // what an index may name: 0 to one less
  int page_size;
};

// Which tokens of a pool a query looks at: [requests, seqlen_q, count].
struct TokenIndices {
  const int* indices;  // one that names no token of the pool is skipped
  const int* lengths;  // [requests]: of each list so many are looked at; null: all
  long long request_stride;
  long long query_stride;
  int count;  // 0: there is no such pool
};

constexpr int most_pools = 2;

// A query token of a prefill is a request of its own, of one query token.
struct SparseMlaArguments {
  const void* q;
  void* out;
  float* lse;         // natural logarithm; null if not wanted
  float* max_logits;  // of scaled scores; null if not wanted
  QueryStrides q_strides;
  QueryStrides out_strides;
  QueryStrides lse_strides;
  QueryStrides max_logits_strides;
  TokenPool pools[most_pools];
  TokenIndices indices[most_pools];
  const float* sinks;  // [num_q_heads], natural logarithms
  float softmax_scale;
  int seqlen_q;
  int num_q_heads;
  int is_aligned_16;  // whether every row of the pools is: encoded ones may be to 8 bytes only
};

// Bytes from the pool's data to a token's row; -1 if the index names none.
ATTNJIT_HOST_DEVICE constexpr long long token_offset(const TokenPool& pool, int index) {
  if (index < 0 || index >= pool.num_tokens) {
    return -1;
  }
  return index / pool.page_size * pool.page_stride + index % pool.page_size * pool.row_stride;
}

// The same to the scales of a token of an encoding that has them apart: `row_bytes` of each token
// of a page come first.
ATTNJIT_HOST_DEVICE constexpr long long scales_offset(const TokenPool& pool, int index,
                                                      int row_bytes, int scale_bytes) {
  return index / pool.page_size * pool.page_stride +
         static_cast<long long>(pool.page_size) * row_bytes +
         static_cast<long long>(index % pool.page_size) * scale_bytes;
}

// Entries of a list of `indices` that are looked at.
ATTNJIT_HOST_DEVICE constexpr int visible_entries(const TokenIndices& indices, int length) {
  return length < 0 ? 0 : length < indices.count ? length : indices.count;
}

}  // namespace attnjit::kernel_interface
