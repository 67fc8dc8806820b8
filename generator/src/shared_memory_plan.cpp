#include "shared_memory_plan.hpp"

#include <algorithm>

namespace attnjit {
namespace {

// As odd_pitch in device/paged_tile.cuh: an odd number of 16-byte units, in elements.
int odd_pitch(int columns) {
  return ((columns + 7) / 8 | 1) * 8;
}

int round_up(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

int shared_memory_bytes(const PagedDecodeConfig& config) {
  const int element_bytes = size_bytes(config.dtype);
  const int pitch_qk = odd_pitch(round_up(config.head_dim_qk, 32));
  const int pitch_v =
      config.value_source == ValueSource::prefix_of_k ? 0 : odd_pitch(config.head_dim_v);
  const int queries = config.block_m * pitch_qk * element_bytes;
  const int tiles = config.num_stages * config.block_n * (pitch_qk + pitch_v) * element_bytes;
  const int probabilities = config.block_m * odd_pitch(config.block_n) * element_bytes;
  const int row_parts = config.num_warps * config.block_m * 4;
  const int pages = 2 * config.block_n * 4;
  return queries + tiles + probabilities + row_parts + pages;
}

int shared_memory_bytes(const SwappedDecodeConfig& config) {
  constexpr int swizzle_bytes = 1024;  // alignment of everything that wgmma and TMA touch
  constexpr int tile_tokens = 64;
  constexpr int box_columns = 64;
  constexpr int barrier_bytes = 8;
  constexpr int num_consumers = 2;
  constexpr int query_stages = 2;
  constexpr int warpgroup_threads = 128;
  constexpr int vector_bytes = 16;
  const int element_bytes = size_bytes(config.dtype);
  const int ring = config.ring_boxes * tile_tokens * box_columns * element_bytes;
  const int probabilities = config.block_rows * tile_tokens * element_bytes;
  const int queries = query_stages * config.block_rows * config.head_dim_qk * element_bytes;
  const int merged_vectors =
      config.head_dim_v / box_columns / num_consumers * (config.block_rows / 8);
  const int merge = merged_vectors * warpgroup_threads * vector_bytes + 2 * config.block_rows * 4;
  const int column_parts = 4 * config.block_rows * 4;
  const int barriers = (2 + config.ring_boxes) * barrier_bytes;
  const int per_consumer = ring + probabilities + merge + column_parts + barriers;
  const int all = num_consumers * per_consumer + queries + 2 * query_stages * barrier_bytes;
  return round_up(all, swizzle_bytes) + swizzle_bytes;  // the base is aligned at run time
}

int shared_memory_bytes(const SeesawDecodeConfig& config) {
  constexpr int swizzle_bytes = 1024;
  constexpr int tile_tokens = 64;
  constexpr int block_rows = 64;
  constexpr int barrier_bytes = 8;
  const int element_bytes = size_bytes(config.dtype);
  const int tiles = 2 * tile_tokens * config.head_dim_qk * element_bytes;
  const int queries = block_rows * config.head_dim_qk * element_bytes;
  const int maxima_and_sums = 2 * 2 * block_rows * 4;
  const int barriers = (2 * 2 * 4 + 2) * barrier_bytes;
  return round_up(tiles + queries + maxima_and_sums + barriers, swizzle_bytes) + swizzle_bytes;
}

namespace {

bool is_fp8(DataType type) {
  return size_bytes(type) == 1;
}

bool is_one_number(ScaleGrain grain) {
  return grain == ScaleGrain::per_tensor || grain == ScaleGrain::per_head;
}

// As SharedScales in device/prefill_scales.cuh.
int scale_bytes(const PrefillConfig& config) {
  const bool has_block = is_one_number(config.scales_q) || is_one_number(config.scales_kv);
  const int rows = config.scales_q == ScaleGrain::per_token ? config.block_m : 0;
  const int keys = config.scales_kv == ScaleGrain::per_token ? config.block_n : 0;
  return (has_block ? 16 : 0) + (rows + 2 * keys) * 4;
}

// A tile of keys or of values, as they lie in memory, until they are converted.
int staged_bytes(const PrefillConfig& config) {
  const int columns = config.head_dim_qk - config.head_dim_rope;
  const bool is_separate = config.value_source == ValueSource::separate;
  const int keys = (is_fp8(config.dtype_kv) ? columns : 0) +
                   (is_fp8(config.dtype_rope) ? config.head_dim_rope : 0);
  const int values = is_fp8(config.dtype_kv) && is_separate ? config.head_dim_v : 0;
  return config.block_n * std::max(keys, values);
}

}  // namespace

int shared_memory_bytes(const PrefillConfig& config) {
  constexpr int place_bytes = 96;  // PrefillWork and VisibleTiles
  const bool is_prefix = config.value_source == ValueSource::prefix_of_k;
  const int padded_qk = round_up(config.head_dim_qk, 16);
  const int padded_v = round_up(config.head_dim_v, 16 * config.column_warps);
  const int pitch_qk = odd_pitch(is_prefix ? std::max(padded_qk, padded_v) : padded_qk);
  const int pitch_out = odd_pitch(padded_v);
  const int tiles = (config.block_m + config.block_n) * pitch_qk +
                    config.block_n * (is_prefix ? pitch_qk : pitch_out);
  const int elements = std::max(tiles, config.block_m * pitch_out);
  return elements * size_bytes(config.dtype) + place_bytes + scale_bytes(config) +
         staged_bytes(config);
}

int shared_memory_bytes(const SparseMlaConfig& config) {
  const bool is_plain = config.kv_encoding == KvEncoding::plain;
  const int encoded_bytes = config.kv_encoding == KvEncoding::fp8_656 ? 656 : 592;  // a row's
  const int padded_qk = round_up(config.head_dim_qk, 16);
  const int padded_v = round_up(config.head_dim_v, 16 * config.column_warps);
  const int pitch = odd_pitch(std::max(padded_qk, padded_v));
  const int keys = config.block_n * (is_plain ? 2 : 1);
  const int elements =
      std::max((config.block_m + keys) * pitch, config.block_m * odd_pitch(padded_v));
  const int encoded = is_plain ? 0 : config.block_n * encoded_bytes;
  const int places = 2 * config.block_n * 16;
  const int valid = 4 * config.block_n / 32 * 4;
  return round_up(elements * size_bytes(config.dtype) + encoded + places + valid, 16);
}

}  // namespace attnjit
