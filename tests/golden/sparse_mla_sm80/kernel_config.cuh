// The constants of one sparse_mla_sm80 kernel.
#pragma once

#include "device/config_types.cuh"

namespace config {
constexpr DataType dtype = DataType::bf16;  // element type of q, out and plain tokens
constexpr KvEncoding kv_encoding = KvEncoding::plain;  // what a token's bytes are
constexpr int head_dim_qk = 576;  // columns of q and of a token
constexpr int head_dim_v = 512;  // columns of out: a token's first
constexpr ValueSource value_source = ValueSource::prefix_of_k;  // v is the first columns of k
constexpr bool has_sinks = false;  // a logit per query head joins the softmax's denominator
constexpr int block_m = 64;  // query heads per thread block
constexpr int block_n = 64;  // tokens per iteration
constexpr int num_warps = 8;  // warps per thread block
constexpr int column_warps = 2;  // warps that share the heads, each with its columns of v
constexpr int shared_memory_bytes = 226336;  // dynamic shared memory of a block
}  // namespace config
