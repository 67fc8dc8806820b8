// Merges attention over parts of the keys into attention over all of them (operation 12 of the
// contract): chunks of a long prefill, a shared prefix and the rest, the ranks of context-parallel
// decode. Runs without compiling or allocating; thread-safe.
#pragma once

#include <span>

#include "attnjit/argument_error.hpp"
#include "attnjit/attention_runtime.hpp"
#include "attnjit/tensor_view.hpp"

struct CUstream_st;

namespace attnjit {

// A descriptor of operation merge_states for outputs of `dtype`, bf16 or fp16, and `head_dim`
// columns: a multiple of 8 up to 576.
AttentionDescriptor merge_states_descriptor(int head_dim, DataType dtype = DataType::bf16);

// Attention over some of the keys.
struct PartialAttention {
  TensorView out;  // [tokens, num_heads, head_dim], 16-byte aligned, stride 1 in the last
                   // dimension, other strides multiples of 8
  TensorView lse;  // fp32 [tokens, num_heads], natural logarithm, without a sink; strides not
                   // negative. -inf or +inf where the part has no key for a row: its out may hold
                   // anything there
};

struct MergeStatesCall {
  std::span<const PartialAttention> partials;  // 1 to 32, in any order
  TensorView out;  // as a part's; may be the first's, or any one's, itself
  TensorView lse;  // as a part's, -inf where no part has a key, and out is 0; or not given
};

// Queues the merge of `call`. Throws ArgumentError listing everything that is wrong, CudaError.
void merge_attention_states(const PreparedMerge& kernel, const MergeStatesCall& call,
                            CUstream_st* stream);

}  // namespace attnjit
