// The constants of one combine_prefill kernel.
#pragma once

#include "device/config_types.cuh"

namespace config {
constexpr DataType dtype_out = DataType::bf16;  // element type of out
constexpr int head_dim_v = 128;  // columns of out
constexpr int q_per_kv = 1;  // query heads that share a kv head; packed into the rows
constexpr int head_dim_rope = 0;  // last columns of k that lie in a tensor of their own
constexpr int block_m = 128;  // query rows per thread block of the prefill
constexpr bool has_sinks = false;  // a logit per query head joins the softmax's denominator
constexpr int num_threads = 128;  // threads of a block, a warp to a row
}  // namespace config
