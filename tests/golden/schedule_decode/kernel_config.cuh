// The constants of one schedule_decode kernel.
#pragma once

#include "device/config_types.cuh"

namespace config {
constexpr int block_n = 64;  // keys per block, the unit of splitting
constexpr int num_threads = 1024;  // threads of the one block
constexpr int piece_units = 113;  // cost of a partial result, for all parts together
constexpr int block_percent = 60;  // a block's time alone, of that when memory is busy
constexpr int window_left = -1;  // keys of a window before the query's own; -1 = all
constexpr int chunk_blocks = 0;  // every request is cut at multiples of so many; 0: by the batch
}  // namespace config
