// Arguments of device/reference_sparse_mla.cu, passed by value. Built-in types only.
#pragma once

#include "interface/prefill_arguments.h"

namespace attnjit::check {

// Which tokens a query looks at the host says: the kernel knows neither pools nor encodings.
struct SparseMlaReferenceArguments {
  const void* q;
  kernel_interface::QueryStrides q_strides;
  const float* tokens;  // [rows, head_dim_qk]
  const int* rows;      // [query tokens, entries]: a row of `tokens`, or -1
  const float* sinks;   // [num_q_heads]; null: none
  double* scores;       // [query tokens, num_q_heads, entries]: scratch
  double* out;          // [query tokens, num_q_heads, head_dim_v]
  double* lse;          // [query tokens, num_q_heads]
  double* max_logits;   // [query tokens, num_q_heads]
  double* magnitude;    // [query tokens, num_q_heads]: of the products of any score
  double softmax_scale;
  int seqlen_q;
  int num_q_heads;
  int head_dim_qk;
  int head_dim_v;
  int entries;
  int kind;  // of q
};

}  // namespace attnjit::check
