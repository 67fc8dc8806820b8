#include "attnjit/decode_grid.hpp"

#include <algorithm>

namespace attnjit {
namespace {

constexpr int registers_per_sm = 65536;
constexpr int most_registers_per_thread = 255;
constexpr int reserved_bytes_per_block = 1024;  // shared memory that the driver takes for itself

int blocks_per_sm(const PagedDecodeConfig& config, const TargetDevice& device) {
  const int by_memory =
      device.shared_memory_per_sm / (config.shared_memory_bytes + reserved_bytes_per_block);
  const int by_registers =
      registers_per_sm / (config.num_warps * 32 * (most_registers_per_thread + 1));
  return std::max(1, std::min(by_memory, by_registers));
}

// The share of the device that `num_blocks` equal thread blocks keep busy in whole waves of
// `slots`.
double wave_efficiency(int num_blocks, int slots) {
  const int waves = (num_blocks + slots - 1) / slots;
  return static_cast<double>(num_blocks) / (static_cast<double>(waves) * slots);
}

int choose_num_parts(int blocks_per_part, int slots) {
  constexpr double good_enough = 0.95;
  constexpr int most_waves = 4;
  const int most = std::max(1, most_waves * slots / blocks_per_part);
  int best = 1;
  for (int parts = 1; parts <= most; ++parts) {
    const double efficiency = wave_efficiency(parts * blocks_per_part, slots);
    if (efficiency > wave_efficiency(best * blocks_per_part, slots)) {
      best = parts;
    }
    if (efficiency >= good_enough) {
      break;
    }
  }
  return best;
}

}  // namespace

DecodeGrid make_decode_grid(const PagedDecodeConfig& config, const TargetDevice& device,
                            int num_kv_heads, int seqlen_q) {
  DecodeGrid grid;
  grid.num_rows = seqlen_q * config.q_per_kv;
  grid.row_tiles = (grid.num_rows + config.block_m - 1) / config.block_m;
  grid.num_kv_heads = num_kv_heads;
  grid.num_parts = choose_num_parts(grid.row_tiles * num_kv_heads,
                                    device.num_sms * blocks_per_sm(config, device));
  return grid;
}

std::int64_t workspace_bytes(const DecodeGrid& grid, int head_dim_v) {
  const std::int64_t rows = max_pieces(grid) * grid.num_kv_heads * grid.num_rows;
  return rows * (std::int64_t{head_dim_v} + 1) * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace attnjit
