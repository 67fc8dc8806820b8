// Arguments of the kernels in tools/check/device, passed by value. Built-in types only.
#pragma once

#include "interface/prefill_arguments.h"

namespace attnjit::check {

enum ElementKind {
  element_bf16 = 0,
  element_fp16 = 1,
  element_fp32 = 2,
  element_uint8 = 3,
  element_fp8_e4m3 = 4,
  element_fp8_e5m2 = 5
};

// Fills `count` elements with N(0, 1), or 0 and 1 for uint8 (1 in `one_in` is 0).
struct FillArguments {
  void* data;
  long long count;
  unsigned long long seed;
  int kind;
  int one_in;
};

// Of an fp8 tensor: draws its scales, and keeps what the elements then stand for.
struct FillScales {
  float* values;  // as the tensor's elements
  float* scales;  // null: all 1
  kernel_interface::CacheStrides strides;
  int heads_per_scale;
  int is_per_token;  // else one for all tokens
  int columns;       // that share a scale, and are rounded to bf16; 0: all, and they are exact
};

// Fills the tokens that requests own and something sees, of q, k or v, and nothing else.
struct FillTokensArguments {
  void* data;
  kernel_interface::RequestTokens tokens;
  const int* first_tokens;  // [batch], before which nothing sees any
  const int* end_tokens;    // [batch], from which on nothing does
  kernel_interface::CacheStrides strides;
  const int* block_table;  // null: tokens lie in a row
  long long block_table_stride;
  unsigned long long seed;
  int num_heads;
  int head_dim;
  int page_size;
  int max_tokens;  // of any request
  int kind;
  float scale;  // of N(0, 1)
  float offset;
  FillScales fp8;  // of an fp8 kind
};

enum MaskMeaning {
  mask_none,
  mask_causal,
  mask_window,
  mask_chunked,
  mask_chunked_causal,
  mask_prefix,
  mask_document,
  mask_tree,
  mask_bool,
  mask_additive,
  mask_bits,
  mask_custom
};

enum ModifierMeaning {
  modifier_none,
  modifier_softcap,
  modifier_alibi,
  modifier_bias,
  modifier_custom
};

// What the expressions of the suites say (their texts: custom_expressions.cpp).
enum CustomMask { custom_mask_dilated, custom_mask_checkered, custom_mask_by_lengths };
enum CustomScore { custom_score_striped, custom_score_squashed, custom_score_by_side };

// Elements by batch, head, query and key, or fewer of these; a dimension that is broadcast has
// stride 0.
struct PairTensor {
  const void* data;
  kernel_interface::MaskStrides strides;
  int queries;  // extents
  int keys;     // of bits: bytes
};

// Segment ids of tokens, as the tokens lie.
struct SegmentIds {
  const int* data;
  long long batch_stride;  // 0: ragged, by the tokens' offsets
};

// What the reference knows of masks: everything in elements, positions and ids; nothing of tiles.
struct ReferenceMask {
  // What is seen: by all masks of any of these, a bit for each MaskMeaning.
  unsigned alternatives[8];
  int num_alternatives;
  int custom;       // CustomMask
  int window_left;  // -1 = unbounded
  int window_right;
  int chunk_size;
  PairTensor pairs;  // of a materialized mask, or of a tree
  int pairs_kind;
  const int* prefix_lens;
  SegmentIds q_segments;
  SegmentIds kv_segments;
  PairTensor blocks;       // of a block-sparse layout; null: none
  int sparsity_block;      // tokens
  int q_heads_per_blocks;  // query heads that share a head of `blocks`
};

// Query rows of one kv head that a thread block of the reference takes together.
constexpr int reference_tile_rows = 16;

// Attention in fp64, straight from the definition.
struct ReferenceArguments {
  const void* q;
  const void* k;
  const void* v;
  kernel_interface::QueryStrides q_strides;
  kernel_interface::CacheStrides k_strides;
  kernel_interface::CacheStrides v_strides;
  kernel_interface::RequestTokens queries;
  kernel_interface::RequestTokens keys;
  const int* query_positions;  // [batch]; null: the last query stands at the last key
  const int* key_positions;    // [batch]; null: 0
  const int* block_table;      // null: keys lie in a row
  long long block_table_stride;
  ReferenceMask mask;
  int modifier;  // ModifierMeaning
  int custom_score;
  PairTensor bias;
  int bias_kind;
  float softcap;
  const float* alibi_slopes;  // [num_q_heads]
  const float* sinks;         // [num_q_heads]; null: none
  float softmax_scale;
  double* scores;     // [tiles of a launch, tile rows, max_keys]
  double* out;        // as the rows of q: [rows, num_q_heads, head_dim_v]
  double* lse;        // [rows, num_q_heads]
  double* magnitude;  // [rows, num_q_heads]: |softmax_scale| * |q| * the largest |k| that is seen
  long long first_tile;  // of this launch
  int tiles;             // per request and kv head
  int num_kv_heads;
  int head_dim_qk;
  int head_dim_v;
  int q_per_kv;
  int page_size;
  int max_keys;
  int kind_q;
  int kind_kv;
};

struct Comparison {
  double worst_excess;      // largest |error| / tolerance over the outputs
  double worst_error;       // largest |error| over the outputs
  double worst_lse_excess;  // the same for the LSE
  double worst_lse_error;
  double dot;            // sums over all outputs: out * reference,
  double squares;        // out^2 + reference^2
  long long mismatches;  // outputs or LSEs where exactly one side is not finite, that are NaN, or
                         // that were written to a row where no query stands
  long long compared;    // outputs and LSEs of rows where one does
};

// Tolerances of the contract: |error| <= absolute + relative * |reference|; of the LSE as
// lse_tolerance.h says. Where the reference's LSE is still poison, no query stands: the row must be
// poison too.
struct CompareArguments {
  const void* out;
  const float* lse;
  const double* reference_out;
  const double* reference_lse;
  const double* reference_magnitude;
  Comparison* result;
  kernel_interface::QueryStrides out_strides;
  kernel_interface::QueryStrides lse_strides;
  long long num_rows;  // query heads times those of q
  int extent;          // rows of q per index of its batch dimension
  int num_q_heads;
  int head_dim_v;
  int kind;
  float out_scale;  // what is stored times it is the output
  double absolute;
  double relative;
  double lse_absolute;
  double lse_relative;
  double lse_rounding;  // of the reference's magnitude
};

}  // namespace attnjit::check
