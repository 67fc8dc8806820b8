// The constants of one prefill_sm80 kernel.
#pragma once

#include "device/config_types.cuh"

namespace config {
constexpr DataType dtype = DataType::bf16;  // element type of the products' operands
constexpr DataType dtype_q = DataType::bf16;  // element type of q; fp8 is converted to dtype
constexpr DataType dtype_kv = DataType::bf16;  // element type of k and v; fp8 is converted to dtype
constexpr DataType dtype_rope = DataType::bf16;  // element type of the rope's columns that lie apart
constexpr DataType dtype_out = DataType::bf16;  // element type of out
constexpr ScaleGrain scales_q = ScaleGrain::none;  // grain of the scales of q
constexpr ScaleGrain scales_kv = ScaleGrain::none;  // grain of the scales of k and v
constexpr ScaleGrain scales_rope = ScaleGrain::none;  // grain of the scales of the rope's columns
constexpr int scale_block = 0;  // columns that share a scale of grain per_block
constexpr bool q_rope_apart = false;  // the rope's columns of q are a tensor of their own
constexpr int head_dim_qk = 192;  // columns of q and k
constexpr int head_dim_v = 128;  // columns of v and out
constexpr int q_per_kv = 1;  // query heads that share a kv head; packed into the rows
constexpr int page_size = 0;  // tokens per page of the cache; 0: keys lie in a row
constexpr int head_dim_rope = 0;  // last columns of k that lie in a tensor of their own
constexpr int rope_page_size = 0;  // tokens per page of that tensor; 0: in a row
constexpr ValueSource value_source = ValueSource::separate;  // v is its own tensor, or the first columns of k
constexpr MaskKind mask = MaskKind::causal;  // which keys a query sees, besides those past the sequence's end
constexpr int window_left = -1;  // keys of a window before the query's own; -1 = all
constexpr int window_right = -1;  // keys of a window after it; -1 = all
constexpr int chunk_size = 0;  // keys per chunk of a chunked mask
constexpr MaskClauses mask_clauses = {0, {}};  // of a composed mask: all masks of a clause, any clause
constexpr DataType dtype_mask = DataType::uint8;  // element type of a materialized mask
constexpr ScoreModifier score_modifier = ScoreModifier::none;  // what happens to a score before the softmax
constexpr DataType dtype_bias = DataType::fp32;  // element type of an additive bias
constexpr int sparsity_block = 0;  // tokens per block of a block-sparse layout; 0: none
constexpr bool has_sinks = false;  // a logit per query head joins the softmax's denominator
constexpr int block_m = 128;  // query rows per thread block
constexpr int block_n = 64;  // keys per iteration
constexpr int num_warps = 4;  // warps per thread block
constexpr int column_warps = 1;  // warps that share the rows, each with its columns of v
constexpr int shared_memory_bytes = 94304;  // dynamic shared memory of a block
}  // namespace config
