// Arguments of kernels/prefill_sm80.cu, passed by value. Built-in types only: read by the host
// compiler and by NVRTC. Strides are in elements. What the kernel's config does not ask for is not
// read.
#pragma once

#include "interface/paged_decode_arguments.h"

namespace attnjit::kernel_interface {

// Tokens of request b: rows [offsets[b], offsets[b + 1]) of a ragged tensor, or index b of the
// batch dimension of a dense one.
struct RequestTokens {
  const int* offsets;  // [batch + 1]; null: dense
  const int* lengths;  // [batch]: tokens of each request; null: the offsets' or the extent
  int extent;          // tokens per request of a dense tensor
};

// What a mask or a score modifier reads besides positions.
struct PrefillMask {
  const void* mask;  // materialized: by batch, head, query, key; tree: the same, of draft tokens
  MaskStrides strides;
  int queries;             // that `mask` covers; those past them see nothing
  int keys;                // that `mask` covers; those past them are hidden
  const int* prefix_lens;  // [batch], of a prefix-LM mask
  const int* q_segments;   // as the tokens of q: ragged, or [batch, extent]
  const int* kv_segments;  // as the tokens of k: ragged, or rows of this stride
  long long kv_segment_stride;
  const float* alibi_slopes;    // [num_q_heads]
  float softcap;                // positive
  const unsigned char* blocks;  // of a block-sparse layout: by batch, head, query block, key block
  // The same in compressed rows, if `blocks` is null: row r looks at the key blocks
  // block_columns[i], ascending, for i in [block_rows[r], block_rows[r + 1]).
  const int* block_rows;
  const int* block_columns;
  MaskStrides block_strides;
  int block_heads;   // rows of blocks per kv head: q_per_kv, or 1 that all of its heads share
  int query_blocks;  // that the layout has; those past them are not looked at
  int key_blocks;
  int segment_keys;  // that kv_segments covers; those past them are hidden
  // Of an additive bias, by batch, head, query, key. Nothing is added past what it covers.
  const void* bias;
  MaskStrides bias_strides;
  int bias_queries;
  int bias_keys;
};

// fp32 scales of an fp8 tensor; null: all are 1. A stride is 0 where one scale serves all. Those of
// one per tensor or head lie at batch * b + head * kv_head; those of blocks of columns follow one
// another behind their row's.
struct QueryScales {
  const float* scales;
  QueryStrides strides;
};
struct KeyScales {
  const float* scales;
  CacheStrides strides;
};

struct PrefillArguments {
  const void* q;
  const void* q_rope;  // last columns of q; unused if q has all columns
  const void* k;
  const void* v;       // unused if v is a prefix of k
  const void* k_rope;  // last columns of k, one head for all; unused if k has all columns
  void* out;
  float* lse;  // null if not wanted
  QueryStrides q_strides;
  QueryStrides q_rope_strides;
  QueryStrides out_strides;
  QueryStrides lse_strides;
  CacheStrides k_strides;  // contiguous keys: batch, head and row only
  CacheStrides v_strides;
  CacheStrides rope_strides;
  QueryScales q_scales;
  KeyScales k_scales;
  KeyScales v_scales;  // unused if v is a prefix of k
  KeyScales rope_scales;
  const float* out_scale;  // what is stored times it is the result; null: 1
  RequestTokens queries;
  RequestTokens keys;
  // [batch], of the first query; null: the last query's key is the last, of rope_extent keys or,
  // if that is 0, of `keys`.
  const int* query_positions;
  const int* key_positions;  // [batch], of the first key; null: 0
  int rope_extent;           // positions that k_rope has rows for; 0 if k has all columns
  const int* block_table;
  long long block_table_stride;
  PrefillMask mask;
  const float* sinks;  // [num_q_heads], natural logarithms
  // Of a call whose keys are shared out over several thread blocks: by part, row of q and query
  // head, the output [head_dim_v] before it is divided by its sum, and the state of its softmax.
  float* partial_out;
  PartialState* partial_states;
  long long partial_rows;  // of a part
  int num_splits;          // parts, 1 to 32; 1: none of these is used
  float softmax_scale;
  int batch;
  int num_kv_heads;
};

// Row tiles of a request begin at multiples of block_m rows of its own. Of ragged queries, request
// b has the tiles from this number on: as many as it may need, found without a sum over requests.
// `first_row` is q_per_kv * offsets[b].
ATTNJIT_HOST_DEVICE constexpr long long first_row_tile(long long first_row, int block_m,
                                                       int request) {
  return first_row / block_m + request;
}

}  // namespace attnjit::kernel_interface
