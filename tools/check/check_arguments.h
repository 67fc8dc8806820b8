// Arguments of the kernels in tools/check/device, passed by value. Built-in types only.
#pragma once

#include "interface/paged_decode_arguments.h"

namespace attnjit::check {

enum ElementKind { element_bf16 = 0, element_fp16 = 1, element_fp32 = 2, element_uint8 = 3 };

// Fills `count` elements with N(0, 1), or 0 and 1 for uint8 (1 in `one_in` is 0).
struct FillArguments {
  void* data;
  long long count;
  unsigned long long seed;
  int kind;
  int one_in;
};

// Fills the tokens of a paged cache that requests own and see, and nothing else.
struct FillCacheArguments {
  void* cache;
  const int* block_table;
  const int* seq_lens;
  const int* first_tokens;  // [batch], before which no query sees any
  kernel_interface::CacheStrides strides;
  long long block_table_stride;
  unsigned long long seed;
  int batch;
  int num_kv_heads;
  int head_dim;
  int page_size;
  int max_seqlen;
  int kind;
  float scale;  // of N(0, 1)
  float offset;
};

enum MaskMeaning {
  mask_none = 0,
  mask_causal = 1,
  mask_bool = 2,
  mask_additive = 3,
  mask_window = 4
};

// Query rows of one kv head that a thread block of the reference takes together.
constexpr int reference_tile_rows = 16;

// Attention in fp64, straight from the definition.
struct ReferenceArguments {
  kernel_interface::PagedDecodeArguments call;  // tensors, strides, shape and scale
  double* scores;                               // [tiles of a launch, tile rows, max_seqlen]
  double* out;                                  // [batch, seqlen_q, num_q_heads, head_dim_v]
  double* lse;                                  // [batch, seqlen_q, num_q_heads]
  long long first_tile;                         // of this launch
  int head_dim_qk;
  int head_dim_v;
  int q_per_kv;
  int page_size;
  int max_seqlen;
  int kind;
  int value_is_prefix;
  int mask;
  int mask_kind;
  int window_left;  // of mask_window; -1 = unbounded
  int window_right;
  int has_sinks;
};

struct Comparison {
  double worst_excess;      // largest |error| / tolerance over the outputs
  double worst_error;       // largest |error| over the outputs
  double worst_lse_excess;  // the same for the LSE
  double worst_lse_error;
  double dot;            // sums over all outputs: out * reference,
  double squares;        // out^2 + reference^2
  long long mismatches;  // outputs or LSEs where exactly one side is not finite, or that are NaN
};

// Tolerances of the contract: |error| <= absolute + relative * |reference|.
struct CompareArguments {
  const void* out;
  const float* lse;
  const double* reference_out;
  const double* reference_lse;
  Comparison* result;
  kernel_interface::QueryStrides out_strides;
  kernel_interface::QueryStrides lse_strides;
  long long num_rows;
  int seqlen_q;
  int num_q_heads;
  int head_dim_v;
  int kind;
  double absolute;
  double relative;
  double lse_absolute;
  double lse_relative;
};

}  // namespace attnjit::check
