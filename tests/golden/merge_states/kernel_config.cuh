// The constants of one merge_states kernel.
#pragma once

#include "device/config_types.cuh"

namespace config {
constexpr DataType dtype = DataType::bf16;  // element type of the parts and of out
constexpr int head_dim_v = 128;  // columns of out
constexpr int num_threads = 256;  // threads of a block
}  // namespace config
