#include "sparse_mla_selection.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "attnjit/descriptor_validation.hpp"
#include "shared_memory_plan.hpp"

namespace attnjit {
namespace {

struct HeadTile {
  int block_m;
  int num_warps;
  int column_warps;
};

// From small to large: the smallest that holds all heads wastes least; more heads than the largest
// take several tiles, which gather the tokens again (from L2). A warp has 16 heads, and of 512
// columns of V 128 or, in the largest, 256, which is what fits in its registers.
constexpr std::array<HeadTile, 3> head_tiles = {{{16, 4, 4}, {32, 8, 4}, {64, 8, 2}}};
constexpr std::array<int, 2> token_blocks = {64, 32};

// Of `config`'s heads the most tokens that fit in `bytes`.
std::optional<SparseMlaConfig> with_most_tokens(SparseMlaConfig config, int bytes) {
  for (const int block_n : token_blocks) {
    config.block_n = block_n;
    config.shared_memory_bytes = shared_memory_bytes(config);
    if (config.shared_memory_bytes <= bytes) {
      return config;
    }
  }
  return std::nullopt;
}

// Twice per multiprocessor if it can, so that one thread block computes while the other waits for
// memory, else once.
std::optional<SparseMlaConfig> fit_tile(SparseMlaConfig config, const HeadTile& tile,
                                        const TargetDevice& device) {
  config.block_m = tile.block_m;
  config.num_warps = tile.num_warps;
  config.column_warps = tile.column_warps;
  const int half = device.shared_memory_per_sm / 2 - 1024;  // the driver keeps 1 KiB per block
  const auto fitted = with_most_tokens(config, half);
  return fitted ? fitted : with_most_tokens(config, device.shared_memory_per_block);
}

}  // namespace

SparseMlaConfig select_sparse_mla(const AttentionDescriptor& descriptor,
                                  const TargetDevice& device) {
  const SparseMlaConfig config = {.dtype = descriptor.dtype_q,
                                  .kv_encoding = descriptor.kv_encoding,
                                  .head_dim_qk = descriptor.head_dim_qk,
                                  .head_dim_v = descriptor.head_dim_v,
                                  .has_sinks = descriptor.has_sinks};
  auto tile = std::find_if(
      head_tiles.begin(), head_tiles.end() - 1,
      [&](const HeadTile& candidate) { return candidate.block_m >= descriptor.num_q_heads; });
  for (;; --tile) {
    if (const auto fitted = fit_tile(config, *tile, device)) {
      return *fitted;
    }
    if (tile == head_tiles.begin()) {
      break;
    }
  }
  throw DescriptorError({{"head_dim_qk", fmt::format("{}", descriptor.head_dim_qk),
                          fmt::format("no tile fits in the {} bytes of shared memory of {} ({})",
                                      device.shared_memory_per_block, device.name, device.arch),
                          "use a GPU with more shared memory per block"}});
}

}  // namespace attnjit
