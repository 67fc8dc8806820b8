#include "attnjit/decode_grid.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "interface/paged_decode_arguments.h"
#include "tensor_checks.hpp"

namespace attnjit {
namespace {

constexpr int registers_per_sm = 65536;
constexpr int most_registers_per_thread = 255;
constexpr int reserved_bytes_per_block = 1024;  // shared memory that the driver takes for itself

int blocks_per_sm(const DecodeTile& tile, const TargetDevice& device) {
  const int by_memory =
      device.shared_memory_per_sm / (tile.shared_memory_bytes + reserved_bytes_per_block);
  const int by_registers = registers_per_sm / (tile.num_threads * (most_registers_per_thread + 1));
  return std::max(1, std::min(by_memory, by_registers));
}

// Sizes far above what hardware and models have, so that no product below overflows.
constexpr int most_heads = 1024;
constexpr int most_query_tokens = 128;
constexpr int most_multiprocessors = 4096;

void check_range(TensorChecks& checks, std::string_view name, int value, int most) {
  if (value < 1 || value > most) {
    checks.add(name, fmt::format("{}", value), fmt::format("must be between 1 and {}", most),
               "pass a tile of select_configs, a device of find_target_device or "
               "query_target_device, and the shape of the call");
  }
}

void check_grid_inputs(const DecodeTile& tile, const TargetDevice& device, int num_kv_heads,
                       int seqlen_q) {
  constexpr int most_threads = 1024;
  constexpr int most_bytes = 1 << 20;
  TensorChecks checks;
  check_range(checks, "tile.block_m", tile.block_m, most_query_tokens * most_heads);
  check_range(checks, "tile.q_per_kv", tile.q_per_kv, most_heads);
  check_range(checks, "tile.num_threads", tile.num_threads, most_threads);
  check_range(checks, "tile.shared_memory_bytes", tile.shared_memory_bytes, most_bytes);
  check_range(checks, "device.num_sms", device.num_sms, most_multiprocessors);
  check_range(checks, "device.shared_memory_per_sm", device.shared_memory_per_sm, most_bytes);
  check_range(checks, "num_kv_heads", num_kv_heads, most_heads);
  check_range(checks, "seqlen_q", seqlen_q, most_query_tokens);
  checks.finish();
}

// The share of the device that `num_blocks` equal thread blocks keep busy in whole waves of
// `slots`.
double wave_efficiency(int num_blocks, int slots) {
  const int waves = (num_blocks + slots - 1) / slots;
  return static_cast<double>(num_blocks) / (static_cast<double>(waves) * slots);
}

// The fewest parts that keep all slots evenly busy; another wave must gain its keep.
int choose_num_parts(int blocks_per_part, int slots) {
  constexpr int most_waves = 4;
  constexpr double worth_a_wave = 1.05;
  int best = 1;
  double best_efficiency = wave_efficiency(blocks_per_part, slots);
  for (int waves = 1; waves <= most_waves; ++waves) {
    const int parts = waves * slots / blocks_per_part;  // the most that fit in this many waves
    if (parts <= best) {
      continue;
    }
    const double efficiency = wave_efficiency(parts * blocks_per_part, slots);
    if (efficiency > best_efficiency * (waves == 1 ? 1.0 : worth_a_wave)) {
      best = parts;
      best_efficiency = efficiency;
    }
  }
  return best;
}

}  // namespace

DecodeGrid make_decode_grid(const DecodeTile& tile, const TargetDevice& device, int num_kv_heads,
                            int seqlen_q) {
  check_grid_inputs(tile, device, num_kv_heads, seqlen_q);
  DecodeGrid grid;
  grid.num_rows = seqlen_q * tile.q_per_kv;
  grid.row_tiles = (grid.num_rows + tile.block_m - 1) / tile.block_m;
  grid.num_kv_heads = num_kv_heads;
  grid.num_parts =
      choose_num_parts(grid.row_tiles * num_kv_heads, device.num_sms * blocks_per_sm(tile, device));
  grid.max_pieces = 2 * std::int64_t{grid.num_parts};
  return grid;
}

DecodeGrid with_chunks(DecodeGrid grid, const ScheduleConfig& config, int max_batch,
                       int max_seqlen_kv) {
  const int blocks = kernel_interface::num_kv_blocks(max_seqlen_kv, config.block_n);
  grid.most_chunks = (blocks - 1) / config.chunk_blocks + 1;
  grid.max_pieces = std::int64_t{max_batch} * grid.most_chunks;
  return grid;
}

PartialTiles partial_tiles(const DecodeGrid& grid, const CombineConfig& config) {
  PartialTiles tiles;
  tiles.tiles = config.partial_order == PartialOrder::rows ? grid.num_rows : grid.row_tiles;
  tiles.rows = config.partial_rows;
  tiles.lines = kernel_interface::lines_of_tile(tiles.rows, config.head_dim_v);
  tiles.values = tiles.lines * kernel_interface::line_values;
  return tiles;
}

std::int64_t lines_per_request(const DecodeGrid& grid, const CombineConfig& config) {
  const PartialTiles tiles = partial_tiles(grid, config);
  return std::int64_t{grid.num_kv_heads} * tiles.tiles * tiles.lines;
}

std::int64_t workspace_bytes(const DecodeGrid& grid, const CombineConfig& config) {
  const PartialTiles tiles = partial_tiles(grid, config);
  const std::size_t tile_bytes =
      static_cast<std::size_t>(tiles.values) * sizeof(kernel_interface::PartialValue) +
      static_cast<std::size_t>(tiles.rows) * sizeof(kernel_interface::PartialState);
  return grid.max_pieces * grid.num_kv_heads * tiles.tiles * static_cast<std::int64_t>(tile_bytes);
}

}  // namespace attnjit
