// Attention of many query tokens per request: operations prefill (ragged or dense keys),
// prefill_kvcache (a paged cache) and mla_prefill_rope (ragged keys whose last columns lie in a
// cache of their own) of a descriptor. Row tiles are found on the device from the offsets, so a
// captured launch follows them; a plan, which only shapes decide, spreads few row tiles over the
// GPU. Runs without compiling or allocating; thread-safe.
#pragma once

#include <cstdint>

#include "attnjit/argument_error.hpp"
#include "attnjit/attention_runtime.hpp"
#include "attnjit/tensor_view.hpp"

struct CUstream_st;

namespace attnjit {

// The tensors of one call. Integers are int32, contiguous, in device memory. q, k, v and out are
// 16-byte aligned, with stride 1 in the last dimension and all other strides multiples of 8.
//
// Query i of request b stands at position query_positions[b] + i, or, if these are not given, where
// the last query has the position of the last key (causal masks are then bottom-right aligned).
// Its key j stands at key_positions[b] + j, or at j. Masks compare positions, and these are the q
// and k of a custom mask or modifier. A composed mask takes what each of its masks takes.
struct PrefillCall {
  TensorView q;  // ragged [total_q, num_q_heads, head_dim_qk], with q_offsets; or dense
                 // [batch, seqlen_q, num_q_heads, head_dim_qk]: bhsd is a view with other strides
  TensorView k;  // thd [total_kv, num_kv_heads, head_dim_qk], with kv_offsets; bshd
                 // [batch, seqlen_kv, num_kv_heads, head_dim_qk]; bhsd: dimensions 1 and 2 swapped;
                 // paged: as k_cache of DecodeCall
  TensorView v;  // the same with head_dim_v; not given if v is a prefix of k
  // Of mla_prefill_rope: the last head_dim_qk - head_dim_v columns of every head of k, which k then
  // lacks (k and v are thd), by position. Paged: nhd [num_pages, page_size, 1, width], hnd
  // [num_pages, 1, page_size, width]; dense [batch, num_keys, 1, width] or [batch, 1, num_keys,
  // width]: the last columns of a cache of latents, or nothing else. width and strides are
  // multiples of 8.
  TensorView k_rope;
  // Of a descriptor with q_rope_apart: the last head_dim_qk - head_dim_v columns of q, which q then
  // lacks; of type dtype_rope.
  TensorView q_rope;
  // fp32 scales of fp8 tensors, of the grains that the descriptor names; 1 where not given. What a
  // tensor holds times its scale is its value.
  //   per_tensor  [1]
  //   per_head    [batch|1, num_kv_heads|1]; of q too; of k_rope [batch|1, 1]
  //   per_token   as the tensor without its last dimension; heads that share a scale: extent 1
  //   per_block   as the tensor, one for scale_block columns; heads likewise
  // Those of q, k and v of one number for a token or more multiply products in fp32, those of the
  // rope's columns with their head's others. Those of blocks, and all of k_rope, multiply what
  // becomes 16 bits (bf16, or fp16 under such a q), which is rounded once.
  TensorView q_scales;
  TensorView k_scales;
  TensorView v_scales;  // not given if v is a prefix of k: k_scales are its scales
  TensorView rope_scales;
  TensorView out_scale;        // [1]: an fp8 out holds the result divided by it, saturated
  TensorView q_offsets;        // [batch + 1], ascending: request b has rows q_offsets[b] to
                               // q_offsets[b + 1] - 1 of q, out and lse
  TensorView q_lens;           // [batch]: query tokens of each request of a dense q; optional
  TensorView kv_offsets;       // [batch + 1], ascending: the same of ragged k and v
  TensorView seq_lens;         // [batch]: keys of each request; of a paged cache, else optional
  TensorView block_table;      // [batch, max_pages], rows may be strided; of a paged cache
  TensorView query_positions;  // [batch]; optional, but for a paged k_rope: tokens cached before
  TensorView key_positions;    // [batch]; optional
  // Of a materialized mask [batch|1, num_q_heads|1, queries|1, keys], by the places of query and
  // key in their request; keys past its end are hidden, queries past it see nothing. Bits: uint8
  // [batch|1, num_q_heads|1, queries|1, bytes], key j is bit j % 8 of byte j / 8. Of a tree mask:
  // bits as these, where bit d is the request's d-th query token's key; all keys before those are
  // visible.
  TensorView mask;
  TensorView prefix_lens;   // [batch]: keys that all queries see, of a prefix-LM mask
  TensorView q_segments;    // [total_q], or [batch, seqlen_q]; of a document mask
  TensorView kv_segments;   // [total_kv], or [batch, seqlen_kv]; of a paged cache the latter
  TensorView alibi_slopes;  // fp32 [num_q_heads]: the score falls by slope * |distance|
  // Of an additive bias: dtype_bias [batch|1, num_q_heads|1, queries|1, keys], by the places of
  // query and key in their request, added to the scaled score. Past its end nothing is added; it
  // must cover all queries and keys of dense tensors.
  TensorView bias;
  // uint8 [batch|1, num_q_heads|num_kv_heads|1, query blocks, key blocks] of sparsity_block tokens
  // each, by the places of query and key in their request: non-zero = looked at. Blocks past its
  // end are not.
  TensorView block_mask;
  // In its place, the layout in compressed sparse rows: int32 [batch|1, num_q_heads|num_kv_heads|1,
  // query blocks + 1], into block_columns; and int32 [entries], the key blocks that a row looks at,
  // ascending.
  TensorView block_rows;
  TensorView block_columns;
  TensorView sinks;  // fp32 [num_q_heads], as of DecodeCall
  TensorView out;    // as q with head_dim_v
  TensorView lse;    // fp32 [num_q_heads, total_q], or [batch, num_q_heads, seqlen_q]; natural
                     // logarithm, without the sink; -inf where nothing is visible; or not given
  float softmax_scale = 1.0f;
  float softcap = 0.0f;  // c of c * tanh(score / c), positive; of score_modifier softcap
};

// How the keys of a call are shared out: where few query rows leave most of a GPU idle, several
// thread blocks take a part of a row tile's keys each, and a second kernel merges their results.
struct PrefillPlan {
  int num_splits = 1;                // parts, at most 32
  std::int64_t workspace_bytes = 0;  // of device memory that run_prefill needs
};

// The plan for a call of these shapes: lengths in device memory are not read, so that it serves all
// calls of the shapes, and graph replays. Pure. Throws ArgumentError listing everything that is
// wrong with the call.
PrefillPlan plan_prefill(const PreparedPrefill& kernel, const PrefillCall& call);

// Queues the attention of `call`, split as `plan` says. `workspace` is 16-byte aligned device
// memory, not used by anything else until the work has ended; null for a plan of one part. Throws
// ArgumentError listing everything that is wrong, CudaError.
void run_prefill(const PreparedPrefill& kernel, const PrefillCall& call, const PrefillPlan& plan,
                 void* workspace, std::int64_t workspace_bytes, CUstream_st* stream);

// The same in one part, whatever the call: the right one wherever row tiles fill the GPU.
void run_prefill(const PreparedPrefill& kernel, const PrefillCall& call, CUstream_st* stream);

}  // namespace attnjit
