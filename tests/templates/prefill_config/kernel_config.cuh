// What the tests of prefill's device code compile it with: the case that ATTNJIT_CASE names. Tiles
// are small, so that few keys make many.
#pragma once

#include "device/config_types.cuh"

#define ATTNJIT_TEXT(name) #name
#define ATTNJIT_NAME(name) ATTNJIT_TEXT(name)
#define ATTNJIT_CASE_NAME ATTNJIT_NAME(ATTNJIT_CASE)

namespace config {

struct Case {
  MaskKind mask = MaskKind::none;
  int window_left = -1;
  int window_right = -1;
  int chunk_size = 0;
  int sparsity_block = 0;
  int q_per_kv = 3;
  int block_m = 32;
  int head_dim_rope = 0;
  MaskClauses mask_clauses = {0, {}};
  ScoreModifier score_modifier = ScoreModifier::none;
};

constexpr Case composed_of(Case parameters, MaskClauses mask_clauses) {
  parameters.mask = MaskKind::composed;
  parameters.mask_clauses = mask_clauses;
  return parameters;
}

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
constexpr Case custom = {.mask = MaskKind::custom};
constexpr Case causal_and_document =
    composed_of({}, {1, {mask_set(MaskKind::causal, MaskKind::document)}});
constexpr Case window_and_chunks =
    composed_of({.window_left = 30, .window_right = 9, .chunk_size = 40},
                {1, {mask_set(MaskKind::sliding_window, MaskKind::chunked)}});
constexpr Case window_or_prefix =
    composed_of({.window_left = 20, .window_right = 3},
                {2, {mask_set(MaskKind::sliding_window), mask_set(MaskKind::prefix_lm)}});
constexpr Case causal_and_custom =
    composed_of({}, {1, {mask_set(MaskKind::causal, MaskKind::custom)}});
constexpr Case causal_and_numbers = composed_of(
    {.q_per_kv = 1}, {1, {mask_set(MaskKind::causal, MaskKind::materialized_additive)}});
constexpr Case document_and_bytes_or_window =
    composed_of({.window_left = 10, .window_right = 0, .sparsity_block = 24},
                {2,
                 {mask_set(MaskKind::sliding_window),
                  mask_set(MaskKind::document, MaskKind::materialized_bool)}});
constexpr Case document_and_bits = composed_of(
    {}, {1, {mask_set(MaskKind::document, MaskKind::causal, MaskKind::materialized_bits)}});
constexpr Case tree_or_document_or_chunks = composed_of(
    {.chunk_size = 24, .q_per_kv = 1},
    {3,
     {mask_set(MaskKind::tree, MaskKind::prefix_lm), mask_set(MaskKind::causal, MaskKind::document),
      mask_set(MaskKind::chunked, MaskKind::custom)}});
constexpr Case biased = {.score_modifier = ScoreModifier::additive_bias};
constexpr Case modified = {.score_modifier = ScoreModifier::custom};

constexpr Case selected = ATTNJIT_CASE;
constexpr MaskKind mask = selected.mask;
constexpr int window_left = selected.window_left;
constexpr int window_right = selected.window_right;
constexpr int chunk_size = selected.chunk_size;
constexpr int sparsity_block = selected.sparsity_block;
constexpr int q_per_kv = selected.q_per_kv;
constexpr int block_m = selected.block_m;
constexpr int head_dim_rope = selected.head_dim_rope;
constexpr MaskClauses mask_clauses = selected.mask_clauses;
constexpr ScoreModifier score_modifier = selected.score_modifier;

constexpr DataType dtype = DataType::bf16;
constexpr DataType dtype_out = DataType::bf16;
constexpr ScaleGrain scales_q = ScaleGrain::none;
constexpr ScaleGrain scales_kv = ScaleGrain::none;
constexpr DataType dtype_mask = DataType::fp32;
constexpr DataType dtype_bias = DataType::fp32;
constexpr ValueSource value_source = ValueSource::separate;
constexpr int head_dim_qk = 64;
constexpr int head_dim_v = 64;
constexpr int block_n = 16;
constexpr int num_warps = 1;
constexpr int column_warps = 1;

}  // namespace config
