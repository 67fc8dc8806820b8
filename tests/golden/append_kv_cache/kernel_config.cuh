// The constants of one append_kv_cache kernel.
#pragma once

#include "device/config_types.cuh"

namespace config {
constexpr DataType dtype = DataType::bf16;  // element type of the new k and v
constexpr DataType dtype_kv = DataType::fp8_e4m3;  // element type of the cache: the same, or fp8
constexpr int head_dim_qk = 128;  // columns of k
constexpr int head_dim_v = 128;  // columns of v; 0: v is a prefix of k
constexpr int num_kv_heads = 8;  // heads of a token in the cache
constexpr int page_size = 64;  // tokens per page of the cache
constexpr int num_threads = 256;  // threads of a block
}  // namespace config
