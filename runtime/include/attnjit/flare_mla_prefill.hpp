// Prefill of DeepSeek's latent attention under the names of Modular's flare_mla_prefill, whose k
// and v are projected up from the latent while the rope columns of k, one head for all, stay in the
// KV cache. Its four overloads are one call: k_rope paged or dense, of 16 bits or fp8, the latter
// with scales of blocks; or everything but the rope in fp8, with scales of tokens. Runs without
// compiling or allocating; thread-safe.
#pragma once

#include <optional>

#include "attnjit/prefill.hpp"

namespace attnjit {

// Which scales a call brings.
enum class FlareScales {
  none,         // overloads 1 and 2
  rope_blocks,  // overload 3: of an fp8 k_rope, one for 64 columns
  per_token,    // overload 4: of an fp8 q and k, one for all heads of a token; their rope is bf16
};

struct FlareMlaPrefillShape {
  int num_heads = 0;
  int q_depth = 192;  // columns of q
  int depth = 128;    // of k, v and the output; the rope has the other q_depth - depth
  int page_size = 0;  // tokens per page of k_rope; 0 = dense
  bool returns_lse = false;
  MaskKind mask = MaskKind::causal;  // other masks: set the fields of the descriptor
  DataType dtype = DataType::bf16;   // of q, k and v; output is bf16 if it is fp8_e4m3
  // Of k_rope: fp8_e4m3, or the 16-bit type of the call; the latter unless scales are rope_blocks.
  std::optional<DataType> dtype_rope = std::nullopt;
  FlareScales scales = FlareScales::none;
};

// A descriptor of operation mla_prefill_rope, for AttentionRuntime::prepare_prefill.
AttentionDescriptor flare_mla_prefill_descriptor(const FlareMlaPrefillShape& shape);

// The tensors of one call; integers are int32, in device memory.
struct FlareMlaPrefillCall {
  TensorView output;  // [total_q, num_heads, depth]
  TensorView q;       // [total_q, num_heads, q_depth]: depth columns, then the rope's; with scales
                      // per_token the depth columns only (q_nope)
  TensorView q_rope;  // bf16 [total_q, num_heads, q_depth - depth], with scales per_token only
  TensorView k;       // [total_rows, num_heads, depth]
  TensorView v;       // [total_rows, num_heads, depth]
  // Paged [num_pages, page_size, 1, width], with block_table and cache_lengths; or dense
  // [batch, num_keys, 1, width], where every request has num_keys keys. Its last columns are read.
  // The tokens of q are in it already.
  TensorView k_rope;
  TensorView q_scale;            // fp32 [total_q, 1], of scales per_token
  TensorView k_scales;           // fp32 [total_rows, 1], of scales per_token
  TensorView k_rope_scales;      // fp32, as k_rope with one for 64 columns, of scales rope_blocks
  TensorView block_table;        // [batch, max_pages], of a paged k_rope
  TensorView cache_lengths;      // [batch]: tokens cached before those of q, of a paged k_rope
  TensorView valid_length;       // [batch + 1]: offsets of the requests' rows in q
  TensorView cache_row_offsets;  // [batch + 1]: offsets of their rows in k and v
  // [batch]: position of each request's first row of k and v; 0 if not given. With the LSE, results
  // over several chunks of keys merge into that over all (merge_states.hpp).
  TensorView cache_offsets;
  // Of a materialized or a tree mask, as PrefillCall has it: by the places of query and key in
  // their request, or in the chunk of its keys.
  TensorView mask;
  TensorView lse;  // fp32 [num_heads, total_q]; or not given
  float scale = 1.0f;
};

// The longest request's query tokens need not be known: row tiles are found on the device. Throws
// ArgumentError listing everything that is wrong, by the names of PrefillCall; CudaError.
void flare_mla_prefill(const PreparedPrefill& kernel, const FlareMlaPrefillCall& call,
                       CUstream_st* stream);

}  // namespace attnjit
