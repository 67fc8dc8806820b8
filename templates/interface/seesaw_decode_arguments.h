// Arguments of kernels/seesaw_decode_sm90.cu, passed by value.
#pragma once

#include "interface/paged_decode_arguments.h"
#include "interface/tensor_map.h"

namespace attnjit::kernel_interface {

struct SeesawDecodeArguments {
  TensorMap kv;  // [batch or 1, pages, num_kv_heads, page_size, head_dim_qk]; box: 64 columns of
                 // 64 tokens, or of a page if that has fewer. Unused where rows are gathered
  PagedDecodeArguments call;
  int kv_batch_step;  // 1 if every request has pages of its own, 0 for a shared pool
};

}  // namespace attnjit::kernel_interface
