// Where the tokens of a call's tensors lie: views become the strides that check kernels take.
// Written for the checks, apart from the runtime's own conversion, so that a stride that is wrong
// there shows. Pure; thread-safe.
#pragma once

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/tensor_view.hpp"
#include "interface/prefill_arguments.h"

namespace attnjit::check {

// The element kind of check_arguments.h.
int element_kind(DataType type);

// Of k, v or their caches, in the descriptor's layout: paged, ragged or dense.
kernel_interface::CacheStrides key_strides(const AttentionDescriptor& descriptor,
                                           const TensorView& keys);

// Of q and out: ragged [total_q, num_q_heads, head_dim], or dense [batch, seqlen_q, …].
kernel_interface::QueryStrides query_strides(const TensorView& queries);

// Of lse: [num_q_heads, total_q], or [batch, num_q_heads, seqlen_q].
kernel_interface::QueryStrides lse_strides(const TensorView& lse);

// Of four dimensions by batch, head, query and key; 0 where there is only one to read.
kernel_interface::MaskStrides pair_strides(const TensorView& pairs);

}  // namespace attnjit::check
