// Arguments of kernels/paged_decode_sm80.cu and kernels/combine_splits.cu, passed by value.
// Built-in types only: read by the host compiler and by NVRTC. Strides are in elements.
#pragma once

#include "interface/decode_schedule.h"

namespace attnjit::kernel_interface {

// A token's row lies at base + batch * b + block * block_table[b][t / page_size] + head * h +
// row * (t % page_size): per-request caches, shared pools, NHD and HND all fit this one rule.
struct CacheStrides {
  long long batch;
  long long block;
  long long head;
  long long row;
};

// Of q and out: [batch, seqlen_q, num_q_heads, head_dim], in any order of the first three.
struct QueryStrides {
  long long batch;
  long long token;
  long long head;
};

struct MaskStrides {
  long long batch;
  long long head;
  long long query;
  long long key;
};

constexpr int line_values = 128;  // of partial results

// Lines of a tile of `rows` rows.
ATTNJIT_HOST_DEVICE constexpr int lines_of_tile(int rows, int head_dim_v) {
  return rows * ((head_dim_v + line_values - 1) / line_values);
}

using PartialValue = unsigned short;  // of the call's 16-bit element type

// A row's softmax over the keys of one piece.
struct PartialState {
  float maximum;  // what scores, in units of log2, are relative to: the largest, or close below
  float sum;      // of exp2(score - maximum); 0 if the row sees none of the keys
};

// Results of the pieces of split requests: out [pieces, num_kv_heads, tiles, lines of a tile, 128]
// and states [pieces, num_kv_heads, tiles, rows of a tile]; a kv head has seqlen_q * q_per_kv rows,
// query-major. device/partial_results.cuh says what a line holds.
struct PartialResults {
  PartialValue* out;
  PartialState* states;
  int tiles;  // of a kv head's rows
};

struct PagedDecodeArguments {
  const void* q;
  const void* k_cache;
  const void* v_cache;  // unused when v is a prefix of k
  const void* mask;     // used by materialized masks only
  void* out;
  float* lse;              // natural logarithm; null if not wanted
  const int* block_table;  // columns past ceil(seq_len / page_size) are never used
  const int* seq_lens;     // [batch]
  const SchedulePart* parts;
  const int* piece_offsets;
  PartialResults partial;
  QueryStrides q_strides;
  QueryStrides out_strides;
  QueryStrides lse_strides;
  CacheStrides k_strides;
  CacheStrides v_strides;
  MaskStrides mask_strides;
  long long block_table_stride;  // between requests
  int block_table_columns;
  int mask_keys;  // that a materialized mask covers; those past them are hidden
  int seqlen_q;
  int num_kv_heads;
  float softmax_scale;
  const float* sinks;  // [num_q_heads], natural logarithms; used by kernels with sinks only
};

struct CombineArguments {
  PartialResults partial;
  void* out;
  float* lse;  // null if not wanted
  const int* piece_offsets;
  QueryStrides out_strides;
  QueryStrides lse_strides;
  int batch;
  int seqlen_q;
  int num_kv_heads;
  int q_per_kv;
  int lines_at_once;   // of a warp: 1; or 2 or 4 if a tile's lines come in as many
  int warps_per_line;  // that may share the pieces of a line: a power of two, all a block's at most
  const float* sinks;  // [num_q_heads], natural logarithms; used by kernels with sinks only
};

}  // namespace attnjit::kernel_interface
