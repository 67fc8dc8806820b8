// The prefills of FlashMLA's tensor-shape reference (operations 3 and 4 of the contract):
// flash_mla_prefill over dense K and V with a block-sparse layout, and mha_fwd_kvcache over a paged
// cache, which it may write first; with the checks and error codes of that reference. They stand on
// prefill.hpp and append_kv_cache.hpp. Run without compiling or allocating; thread-safe.
//
// Symbols: B batch, H heads, Hq and Hk query and kv heads, P query tokens, D head dim, Nblk blocks
// of 64 tokens per request.
#pragma once

#include <memory>

#include "attnjit/append_kv_cache.hpp"
#include "attnjit/flash_mla.hpp"
#include "attnjit/prefill.hpp"

namespace attnjit {

struct FlashMlaPrefillShape {
  int num_q_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int head_dim_v = 0;                // 0 = head_dim
  int sparsity_block = 0;            // tokens of a block of sparse_layout, 16 to 128; 0 = none
  MaskKind mask = MaskKind::causal;  // or materialized_bool, materialized_additive, …
  DataType dtype_mask = DataType::uint8;
  DataType dtype = DataType::bf16;
};

// A descriptor for AttentionRuntime::prepare_prefill. Throws FlashMlaError (head_ratio).
AttentionDescriptor flash_mla_prefill_descriptor(const FlashMlaPrefillShape& shape);

// Leading dimensions may be strided, in the listed order; the last has stride 1.
struct FlashMlaPrefillCall {
  TensorView q;  // [B, Hq, P, D]
  TensorView k;  // [B, Hk, keys, D]; P keys, or more: causal is then bottom-right aligned
  TensorView v;  // [B, Hk, keys, head_dim_v]
  TensorView sparse_layout;   // uint8 [B|1, Hq|Hk|1, query blocks, key blocks], non-zero = looked
                              // at; or compressed rows, int32 [B|1, Hq|Hk|1, query blocks + 1], of
  TensorView sparse_columns;  // int32 [entries]: the key blocks of each row, ascending
  TensorView attn_mask;       // [B|1, Hq|1, P|1, at least keys]; in place of causal
  TensorView out;             // [B, Hq, P, head_dim_v]
  TensorView lse;             // fp32 [B, Hq, P], natural logarithm; or not given
  float softmax_scale = 0;    // 0 = 1 / sqrt(D)
};

// Queues the attention of `call` on `stream`. Throws FlashMlaError, ArgumentError, CudaError.
void flash_mla_prefill(const PreparedPrefill& kernel, const FlashMlaPrefillCall& call,
                       CUstream_st* stream);

struct MhaKvCacheShape {
  int num_heads = 0;
  int head_dim = 0;
  MaskKind mask = MaskKind::causal;
  DataType dtype_mask = DataType::uint8;
  DataType dtype = DataType::bf16;
};

// The kernels of mha_fwd_kvcache, loaded on one device. Cheap to copy.
struct PreparedMhaKvCache {
  std::shared_ptr<const PreparedPrefill> prefill;
  std::shared_ptr<const PreparedAppend> append;
};

// May compile. Throws as AttentionRuntime::prepare_prefill does.
PreparedMhaKvCache prepare_mha_kvcache(AttentionRuntime& runtime, const MhaKvCacheShape& shape,
                                       int device);

struct MhaKvCacheCall {
  TensorView q;             // [B, H, P, D]
  TensorView k_cache;       // [B, H, Nblk, 64, D], contiguous within the last two
  TensorView v_cache;       // the same
  TensorView block_table;   // int32 [B, Nblk], contiguous: ids count within a request's blocks
  TensorView seq_lens;      // int32 [B]: keys of each request, those of q included; P for a prompt
                            // from its beginning
  TensorView k_new;         // [B, H, P, D]: written to the request's last P places before they are
  TensorView v_new;         // read; both or neither
  TensorView attn_mask;     // [B|1, H|1, P|1, keys]; in place of causal
  TensorView out;           // [B, H, P, D]
  TensorView lse;           // fp32 [B, H, P], natural logarithm; or not given
  float softmax_scale = 0;  // 0 = 1 / sqrt(D)
};

// Queues the cache write, if there is one, and the attention of `call` on `stream`. Throws
// FlashMlaError, ArgumentError, CudaError.
void mha_fwd_kvcache(const PreparedMhaKvCache& kernels, const MhaKvCacheCall& call,
                     CUstream_st* stream);

}  // namespace attnjit
