// Arguments of kernels/append_kv_cache.cu, shared by host and device code. Strides are in elements.
#pragma once

#include "interface/paged_decode_arguments.h"

namespace attnjit::kernel_interface {

// Of k_new and v_new: token t is row t % tokens_per_batch of t / tokens_per_batch.
struct NewTokenStrides {
  long long batch;
  long long token;
  long long head;
};

struct ScaleStrides {
  long long batch;
  long long head;
};

// k_new or v_new, and where its rows go.
struct AppendedRows {
  const void* source;
  void* cache;
  const float* scale;  // by which values are divided; null: 1
  NewTokenStrides source_strides;
  CacheStrides cache_strides;
  ScaleStrides scale_strides;
};

// Where new tokens go: the last of each request's positions, through its block table; or physical
// slots, page * page_size + row. One of block_table and slot_mapping is null.
struct NewTokenPlaces {
  const int* new_offsets;  // [batch + 1]: the tokens of each request; null: tokens_per_batch each
  const int* seq_lens;     // [batch], the new tokens included; used with a block table
  const int* block_table;
  const void* slot_mapping;  // [num_tokens] of slot_bytes each; negative: not written
  long long block_table_stride;
  long long num_pages;
  int block_table_columns;
  int slot_bytes;
  int batch;
  int num_tokens;
  int tokens_per_batch;
};

struct AppendKvCacheArguments {
  AppendedRows k;
  AppendedRows v;  // unused when v is a prefix of k
  NewTokenPlaces places;
};

}  // namespace attnjit::kernel_interface
