// The constants of one combine_splits kernel.
#pragma once

#include "device/config_types.cuh"

namespace config {
constexpr DataType dtype = DataType::bf16;  // element type of out
constexpr int head_dim_v = 512;  // columns of out
constexpr PartialOrder partial_order = PartialOrder::transposed;  // how the attention kernel lays out partial results
constexpr int partial_rows = 16;  // rows of a tile of partial results
constexpr int num_warps = 16;  // warps per thread block
constexpr int segment_pieces = 0;  // pieces that are merged first, in order; 0: by the batch
constexpr bool overlaps_attention = true;  // launched before the attention has ended
constexpr bool has_sinks = false;  // a logit per query head joins the softmax's denominator
}  // namespace config
