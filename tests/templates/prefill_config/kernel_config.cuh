// What the tests of prefill's device code compile it with: the case that ATTNJIT_CASE names. Tiles
// are small, so that few keys make many.
#pragma once

#include "device/config_types.cuh"

#define ATTNJIT_TEXT(name) #name
#define ATTNJIT_NAME(name) ATTNJIT_TEXT(name)
#define ATTNJIT_CASE_NAME ATTNJIT_NAME(ATTNJIT_CASE)

namespace config {

struct Case {
  MaskKind mask;
  int window_left = -1;
  int window_right = -1;
  int chunk_size = 0;
  int sparsity_block = 0;
  int q_per_kv = 3;
  int block_m = 32;
  int head_dim_rope = 0;
};

constexpr Case unmasked = {.mask = MaskKind::none};
constexpr Case causal = {.mask = MaskKind::causal, .q_per_kv = 7};
constexpr Case window = {.mask = MaskKind::sliding_window, .window_left = 40, .window_right = 5};
constexpr Case left_window = {.mask = MaskKind::sliding_window, .window_left = 0};
constexpr Case right_window = {.mask = MaskKind::sliding_window, .window_right = 17};
constexpr Case chunked = {.mask = MaskKind::chunked, .chunk_size = 24, .q_per_kv = 1};
constexpr Case chunked_causal = {.mask = MaskKind::chunked_causal, .chunk_size = 50};
constexpr Case prefix_lm = {.mask = MaskKind::prefix_lm};
constexpr Case document = {.mask = MaskKind::document};
constexpr Case tree = {.mask = MaskKind::tree};
constexpr Case mask_bytes = {.mask = MaskKind::materialized_bool};
constexpr Case mask_numbers = {.mask = MaskKind::materialized_additive};
constexpr Case mask_bits = {.mask = MaskKind::materialized_bits, .q_per_kv = 1};
constexpr Case blocks = {.mask = MaskKind::none, .sparsity_block = 24};
constexpr Case causal_blocks = {.mask = MaskKind::causal, .sparsity_block = 16};
constexpr Case document_blocks = {.mask = MaskKind::document, .sparsity_block = 100};
constexpr Case many_heads = {.mask = MaskKind::causal, .q_per_kv = 71, .block_m = 16};
constexpr Case rope = {.mask = MaskKind::causal, .q_per_kv = 1, .head_dim_rope = 16};

constexpr Case selected = ATTNJIT_CASE;
constexpr MaskKind mask = selected.mask;
constexpr int window_left = selected.window_left;
constexpr int window_right = selected.window_right;
constexpr int chunk_size = selected.chunk_size;
constexpr int sparsity_block = selected.sparsity_block;
constexpr int q_per_kv = selected.q_per_kv;
constexpr int block_m = selected.block_m;
constexpr int head_dim_rope = selected.head_dim_rope;

constexpr DataType dtype = DataType::bf16;
constexpr DataType dtype_out = DataType::bf16;
constexpr ScaleGrain scales_q = ScaleGrain::none;
constexpr ScaleGrain scales_kv = ScaleGrain::none;
constexpr DataType dtype_mask = DataType::fp32;
constexpr ValueSource value_source = ValueSource::separate;
constexpr int head_dim_qk = 64;
constexpr int head_dim_v = 64;
constexpr int block_n = 16;
constexpr int num_warps = 1;
constexpr int column_warps = 1;

}  // namespace config
