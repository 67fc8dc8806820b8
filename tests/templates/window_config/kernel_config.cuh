// What decode_range_test.cpp compiles device/decode_range.cuh with: a window to both sides.
#pragma once

#include "device/config_types.cuh"

namespace config {
constexpr MaskKind mask = MaskKind::sliding_window;
constexpr int window_left = 100;
constexpr int window_right = 1;
constexpr int q_per_kv = 3;
constexpr int chunk_blocks = 0;
}  // namespace config
