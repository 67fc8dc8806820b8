// One struct per kernel template: every constant its rendered kernel_config.cuh holds, under the
// same name. Chosen by select_configs, rendered by render, part of the cache key. Plain values.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/mask_formula.hpp"

namespace attnjit {

// templates/kernels/paged_decode_sm80.cu: split-KV decode over a paged cache, mma.sync + cp.async.
struct PagedDecodeConfig {
  DataType dtype = DataType::bf16;  // of q, k, v and out
  int head_dim_qk = 0;
  int head_dim_v = 0;
  int q_per_kv = 0;
  int page_size = 0;
  ValueSource value_source = ValueSource::separate;
  MaskKind mask = MaskKind::causal;
  int window_left = -1;   // keys; -1 = unbounded
  int window_right = -1;  // keys; at least 0 if the mask is a window
  bool has_sinks = false;
  DataType dtype_mask = DataType::uint8;
  int block_m = 0;
  int block_n = 0;
  int num_warps = 0;
  int num_stages = 0;
  int chunk_blocks = 0;
  int shared_memory_bytes = 0;

  friend bool operator==(const PagedDecodeConfig&, const PagedDecodeConfig&) = default;
};

// How the kernels over a latent cache on Hopper copy keys: boxes of a page by tensor copies (TMA),
// or row by row (cp.async), whatever the page size.
enum class KvCopy { tensor, gather };
std::string_view to_string(KvCopy);

// templates/kernels/swapped_decode_sm90.cu: decode of few query rows over a latent cache, by TMA
// and wgmma with tokens on M and query rows on N.
struct SwappedDecodeConfig {
  DataType dtype = DataType::bf16;  // of q, k, v and out
  int head_dim_qk = 0;
  int head_dim_v = 0;
  int q_per_kv = 0;
  int page_size = 0;
  ValueSource value_source = ValueSource::prefix_of_k;
  MaskKind mask = MaskKind::causal;
  int window_left = -1;   // keys; -1 = unbounded
  int window_right = -1;  // keys; at least 0 if the mask is a window
  bool has_sinks = false;
  KvCopy kv_copy = KvCopy::tensor;
  int block_rows = 0;
  int ring_boxes = 0;
  int chunk_blocks = 0;
  int shared_memory_bytes = 0;

  friend bool operator==(const SwappedDecodeConfig&, const SwappedDecodeConfig&) = default;
};

// templates/kernels/seesaw_decode_sm90.cu: decode of many query rows over a latent cache, by TMA
// and wgmma with 64 query rows on M.
struct SeesawDecodeConfig {
  DataType dtype = DataType::bf16;  // of q, k, v and out
  int head_dim_qk = 0;
  int head_dim_v = 0;
  int q_per_kv = 0;
  int page_size = 0;
  ValueSource value_source = ValueSource::prefix_of_k;
  MaskKind mask = MaskKind::causal;
  int window_left = -1;   // keys; -1 = unbounded
  int window_right = -1;  // keys; at least 0 if the mask is a window
  bool has_sinks = false;
  KvCopy kv_copy = KvCopy::tensor;
  int chunk_blocks = 0;
  int shared_memory_bytes = 0;

  friend bool operator==(const SeesawDecodeConfig&, const SeesawDecodeConfig&) = default;
};

// How partial results lie in memory: templates/device/partial_results.cuh.
enum class PartialOrder { rows, accumulators, transposed };
std::string_view to_string(PartialOrder);

// templates/kernels/combine_splits.cu: merges the partial results of split requests.
struct CombineConfig {
  DataType dtype = DataType::bf16;  // of out
  int head_dim_v = 0;
  PartialOrder partial_order = PartialOrder::rows;
  int partial_rows = 0;
  int num_warps = 0;
  int segment_pieces = 0;
  bool overlaps_attention = false;
  bool has_sinks = false;

  friend bool operator==(const CombineConfig&, const CombineConfig&) = default;
};

// templates/kernels/schedule_decode.cu: cuts the KV blocks of a batch into equal parts, on device.
struct ScheduleConfig {
  int block_n = 0;
  int num_threads = 0;
  int piece_units = 0;
  int block_percent = 0;
  int window_left = -1;  // keys; -1 = unbounded
  int chunk_blocks = 0;

  friend bool operator==(const ScheduleConfig&, const ScheduleConfig&) = default;
};

// templates/kernels/merge_states.cu: merges attention over parts of the keys by their LSE.
struct MergeStatesConfig {
  DataType dtype = DataType::bf16;  // of the parts and of out
  int head_dim_v = 0;
  int num_threads = 0;

  friend bool operator==(const MergeStatesConfig&, const MergeStatesConfig&) = default;
};

// templates/kernels/prefill_sm80.cu: attention of many query tokens over ragged, dense or paged
// keys, mma.sync + cp.async.
struct PrefillConfig {
  DataType dtype = DataType::bf16;  // of the products: bf16 or fp16
  DataType dtype_q = DataType::bf16;
  DataType dtype_kv = DataType::bf16;
  DataType dtype_rope = DataType::bf16;
  DataType dtype_out = DataType::bf16;
  ScaleGrain scales_q = ScaleGrain::none;
  ScaleGrain scales_kv = ScaleGrain::none;
  ScaleGrain scales_rope = ScaleGrain::none;
  int scale_block = 0;
  bool q_rope_apart = false;
  int head_dim_qk = 0;
  int head_dim_v = 0;
  int q_per_kv = 0;
  int page_size = 0;
  int head_dim_rope = 0;
  int rope_page_size = 0;
  ValueSource value_source = ValueSource::separate;
  MaskKind mask = MaskKind::causal;
  int window_left = -1;
  int window_right = -1;
  int chunk_size = 0;
  MaskFormula mask_clauses;     // of a composed mask
  std::string mask_expression;  // goes into a slot of the template, not into its constants
  DataType dtype_mask = DataType::uint8;
  ScoreModifier score_modifier = ScoreModifier::none;
  DataType dtype_bias = DataType::fp32;
  std::string score_expression;  // as mask_expression
  int sparsity_block = 0;
  bool has_sinks = false;
  int block_m = 0;
  int block_n = 0;
  int num_warps = 0;
  int column_warps = 0;
  int shared_memory_bytes = 0;

  friend bool operator==(const PrefillConfig&, const PrefillConfig&) = default;
};

// templates/kernels/combine_prefill.cu: merges the parts of a split prefill.
struct CombinePrefillConfig {
  DataType dtype_out = DataType::bf16;
  int head_dim_v = 0;
  int q_per_kv = 0;
  int head_dim_rope = 0;
  int block_m = 0;
  bool has_sinks = false;
  int num_threads = 0;

  friend bool operator==(const CombinePrefillConfig&, const CombinePrefillConfig&) = default;
};

// templates/kernels/sparse_mla_sm80.cu: attention of each query token over the tokens that its
// indices name, mma.sync + cp.async.
struct SparseMlaConfig {
  DataType dtype = DataType::bf16;  // of q, out and plain tokens
  KvEncoding kv_encoding = KvEncoding::plain;
  int head_dim_qk = 0;
  int head_dim_v = 0;
  ValueSource value_source = ValueSource::prefix_of_k;
  bool has_sinks = false;
  int block_m = 0;
  int block_n = 0;
  int num_warps = 0;
  int column_warps = 0;
  int shared_memory_bytes = 0;

  friend bool operator==(const SparseMlaConfig&, const SparseMlaConfig&) = default;
};

// templates/kernels/append_kv_cache.cu: writes the K and V of new tokens into a paged cache.
struct AppendKvCacheConfig {
  DataType dtype = DataType::bf16;  // of the new K and V
  DataType dtype_kv = DataType::bf16;
  int head_dim_qk = 0;
  int head_dim_v = 0;  // 0 if v is a prefix of k
  int num_kv_heads = 0;
  int page_size = 0;
  int num_threads = 0;

  friend bool operator==(const AppendKvCacheConfig&, const AppendKvCacheConfig&) = default;
};

using KernelConfig =
    std::variant<PagedDecodeConfig, SwappedDecodeConfig, SeesawDecodeConfig, CombineConfig,
                 ScheduleConfig, MergeStatesConfig, AppendKvCacheConfig, PrefillConfig,
                 CombinePrefillConfig, SparseMlaConfig>;

// What every attention kernel over a paged cache takes from the descriptor alone.
template <typename Config, typename Visitor>
void for_each_call_field(const Config& config, Visitor& visit) {
  visit("dtype", config.dtype, "element type of q, k, v and out");
  visit("head_dim_qk", config.head_dim_qk, "columns of q and k");
  visit("head_dim_v", config.head_dim_v, "columns of v and out");
  visit("q_per_kv", config.q_per_kv, "query heads that share a kv head; packed into the rows");
  visit("page_size", config.page_size, "tokens per page of the cache");
  visit("value_source", config.value_source, "v is its own tensor, or the first columns of k");
  visit("mask", config.mask, "which keys a query sees, besides those past the sequence's end");
  visit("window_left", config.window_left, "keys of a window before the query's own; -1 = all");
  visit("window_right", config.window_right, "keys of a window after it; unused without one");
  visit("has_sinks", config.has_sinks, "a logit per query head joins the softmax's denominator");
}

constexpr const char* chunk_blocks_comment =
    "every request is cut at multiples of so many; 0: by the batch";

// Calls visit(name, member, comment) for every field: the rendered header, JSON and the tests that
// perturb each field are built on it, so a new knob cannot be forgotten by one of them.
template <typename Visitor>
void for_each_field(const PagedDecodeConfig& config, Visitor&& visit) {
  for_each_call_field(config, visit);
  visit("dtype_mask", config.dtype_mask, "element type of a materialized mask");
  visit("block_m", config.block_m, "query rows per thread block");
  visit("block_n", config.block_n, "keys per iteration");
  visit("num_warps", config.num_warps, "warps per thread block");
  visit("num_stages", config.num_stages, "KV tiles in flight plus the one in use");
  visit("chunk_blocks", config.chunk_blocks, chunk_blocks_comment);
  visit("shared_memory_bytes", config.shared_memory_bytes, "dynamic shared memory of a block");
}

template <typename Visitor>
void for_each_field(const SwappedDecodeConfig& config, Visitor&& visit) {
  for_each_call_field(config, visit);
  visit("kv_copy", config.kv_copy, "whole boxes by tensor copies, or rows gathered");
  visit("block_rows", config.block_rows, "query rows, N of the products");
  visit("ring_boxes", config.ring_boxes, "boxes of 64 tokens by 64 columns in a consumer's ring");
  visit("chunk_blocks", config.chunk_blocks, chunk_blocks_comment);
  visit("shared_memory_bytes", config.shared_memory_bytes, "dynamic shared memory of a block");
}

template <typename Visitor>
void for_each_field(const SeesawDecodeConfig& config, Visitor&& visit) {
  for_each_call_field(config, visit);
  visit("kv_copy", config.kv_copy, "whole boxes by tensor copies, or rows gathered");
  visit("chunk_blocks", config.chunk_blocks, chunk_blocks_comment);
  visit("shared_memory_bytes", config.shared_memory_bytes, "dynamic shared memory of a block");
}

template <typename Visitor>
void for_each_field(const CombineConfig& config, Visitor&& visit) {
  visit("dtype", config.dtype, "element type of out");
  visit("head_dim_v", config.head_dim_v, "columns of out");
  visit("partial_order", config.partial_order, "how the attention kernel lays out partial results");
  visit("partial_rows", config.partial_rows, "rows of a tile of partial results");
  visit("num_warps", config.num_warps, "warps per thread block");
  visit("segment_pieces", config.segment_pieces,
        "pieces that are merged first, in order; 0: by the batch");
  visit("overlaps_attention", config.overlaps_attention, "launched before the attention has ended");
  visit("has_sinks", config.has_sinks, "a logit per query head joins the softmax's denominator");
}

template <typename Visitor>
void for_each_field(const ScheduleConfig& config, Visitor&& visit) {
  visit("block_n", config.block_n, "keys per block, the unit of splitting");
  visit("num_threads", config.num_threads, "threads of the one block");
  visit("piece_units", config.piece_units, "cost of a partial result, for all parts together");
  visit("block_percent", config.block_percent, "a block's time alone, of that when memory is busy");
  visit("window_left", config.window_left, "keys of a window before the query's own; -1 = all");
  visit("chunk_blocks", config.chunk_blocks, chunk_blocks_comment);
}

template <typename Visitor>
void for_each_field(const MergeStatesConfig& config, Visitor&& visit) {
  visit("dtype", config.dtype, "element type of the parts and of out");
  visit("head_dim_v", config.head_dim_v, "columns of out");
  visit("num_threads", config.num_threads, "threads of a block");
}

template <typename Visitor>
void for_each_field(const PrefillConfig& config, Visitor&& visit) {
  visit("dtype", config.dtype, "element type of the products' operands");
  visit("dtype_q", config.dtype_q, "element type of q; fp8 is converted to dtype");
  visit("dtype_kv", config.dtype_kv, "element type of k and v; fp8 is converted to dtype");
  visit("dtype_rope", config.dtype_rope, "element type of the rope's columns that lie apart");
  visit("dtype_out", config.dtype_out, "element type of out");
  visit("scales_q", config.scales_q, "grain of the scales of q");
  visit("scales_kv", config.scales_kv, "grain of the scales of k and v");
  visit("scales_rope", config.scales_rope, "grain of the scales of the rope's columns");
  visit("scale_block", config.scale_block, "columns that share a scale of grain per_block");
  visit("q_rope_apart", config.q_rope_apart, "the rope's columns of q are a tensor of their own");
  visit("head_dim_qk", config.head_dim_qk, "columns of q and k");
  visit("head_dim_v", config.head_dim_v, "columns of v and out");
  visit("q_per_kv", config.q_per_kv, "query heads that share a kv head; packed into the rows");
  visit("page_size", config.page_size, "tokens per page of the cache; 0: keys lie in a row");
  visit("head_dim_rope", config.head_dim_rope,
        "last columns of k that lie in a tensor of their own");
  visit("rope_page_size", config.rope_page_size, "tokens per page of that tensor; 0: in a row");
  visit("value_source", config.value_source, "v is its own tensor, or the first columns of k");
  visit("mask", config.mask, "which keys a query sees, besides those past the sequence's end");
  visit("window_left", config.window_left, "keys of a window before the query's own; -1 = all");
  visit("window_right", config.window_right, "keys of a window after it; -1 = all");
  visit("chunk_size", config.chunk_size, "keys per chunk of a chunked mask");
  visit("mask_clauses", config.mask_clauses,
        "of a composed mask: all masks of a clause, any clause");
  visit("mask_expression", config.mask_expression, "what a custom mask shows");
  visit("dtype_mask", config.dtype_mask, "element type of a materialized mask");
  visit("score_modifier", config.score_modifier, "what happens to a score before the softmax");
  visit("dtype_bias", config.dtype_bias, "element type of an additive bias");
  visit("score_expression", config.score_expression, "what a custom modifier makes of a score");
  visit("sparsity_block", config.sparsity_block,
        "tokens per block of a block-sparse layout; 0: none");
  visit("has_sinks", config.has_sinks, "a logit per query head joins the softmax's denominator");
  visit("block_m", config.block_m, "query rows per thread block");
  visit("block_n", config.block_n, "keys per iteration");
  visit("num_warps", config.num_warps, "warps per thread block");
  visit("column_warps", config.column_warps,
        "warps that share the rows, each with its columns of v");
  visit("shared_memory_bytes", config.shared_memory_bytes, "dynamic shared memory of a block");
}

template <typename Visitor>
void for_each_field(const CombinePrefillConfig& config, Visitor&& visit) {
  visit("dtype_out", config.dtype_out, "element type of out");
  visit("head_dim_v", config.head_dim_v, "columns of out");
  visit("q_per_kv", config.q_per_kv, "query heads that share a kv head; packed into the rows");
  visit("head_dim_rope", config.head_dim_rope,
        "last columns of k that lie in a tensor of their own");
  visit("block_m", config.block_m, "query rows per thread block of the prefill");
  visit("has_sinks", config.has_sinks, "a logit per query head joins the softmax's denominator");
  visit("num_threads", config.num_threads, "threads of a block, a warp to a row");
}

template <typename Visitor>
void for_each_field(const SparseMlaConfig& config, Visitor&& visit) {
  visit("dtype", config.dtype, "element type of q, out and plain tokens");
  visit("kv_encoding", config.kv_encoding, "what a token's bytes are");
  visit("head_dim_qk", config.head_dim_qk, "columns of q and of a token");
  visit("head_dim_v", config.head_dim_v, "columns of out: a token's first");
  visit("value_source", config.value_source, "v is the first columns of k");
  visit("has_sinks", config.has_sinks, "a logit per query head joins the softmax's denominator");
  visit("block_m", config.block_m, "query heads per thread block");
  visit("block_n", config.block_n, "tokens per iteration");
  visit("num_warps", config.num_warps, "warps per thread block");
  visit("column_warps", config.column_warps,
        "warps that share the heads, each with its columns of v");
  visit("shared_memory_bytes", config.shared_memory_bytes, "dynamic shared memory of a block");
}

template <typename Visitor>
void for_each_field(const AppendKvCacheConfig& config, Visitor&& visit) {
  visit("dtype", config.dtype, "element type of the new k and v");
  visit("dtype_kv", config.dtype_kv, "element type of the cache: the same, or fp8");
  visit("head_dim_qk", config.head_dim_qk, "columns of k");
  visit("head_dim_v", config.head_dim_v, "columns of v; 0: v is a prefix of k");
  visit("num_kv_heads", config.num_kv_heads, "heads of a token in the cache");
  visit("page_size", config.page_size, "tokens per page of the cache");
  visit("num_threads", config.num_threads, "threads of a block");
}

// What the launch of an attention kernel over a schedule follows from.
struct DecodeTile {
  int block_m = 0;  // query rows per thread block
  int block_n = 0;  // keys per block of the schedule
  int q_per_kv = 0;
  int num_threads = 0;
  int shared_memory_bytes = 0;
};

// Of a kernel whose role is attention; throws std::invalid_argument for another.
DecodeTile decode_tile(const KernelConfig& config);

// Which stage of an operation a kernel serves.
enum class KernelRole { attention, combine, schedule, merge, append, prefill, sparse };
std::string_view to_string(KernelRole);
KernelRole role_of(const KernelConfig& config);

// The template's name, e.g. "paged_decode_sm80".
std::string_view kernel_name(const KernelConfig& config);

// One line of JSON: {"kernel": "<template>", fields…}.
std::string to_json(const KernelConfig& config);

// A short name for tables and logs: "paged_decode_sm80 bf16 576/512 x16 page 64 none m16 …".
std::string describe(const KernelConfig& config);

}  // namespace attnjit
