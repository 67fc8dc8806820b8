#include "prefill_selection.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "attnjit/descriptor_validation.hpp"
#include "shared_memory_plan.hpp"

namespace attnjit {
namespace {

struct RowTile {
  int block_m;
  int num_warps;
  int column_warps;
};

// Each from large to small. A warp holds the output of its rows in registers, at most 128 numbers
// a thread: 32 rows of up to 128 columns, each key then multiplied with 32 rows once loaded; 16
// rows of up to 256; or 16 rows of half the columns, whose scores two warps then both compute.
constexpr std::array<RowTile, 2> narrow_tiles = {{{128, 4, 1}, {64, 4, 1}}};
constexpr std::array<RowTile, 2> middle_tiles = {{{128, 8, 1}, {64, 4, 1}}};
constexpr std::array<RowTile, 2> wide_tiles = {{{64, 8, 2}, {32, 4, 2}}};

// Whether a mask reads memory to know what a query sees of a tile of keys.
bool reads_memory(MaskKind mask) {
  return mask == MaskKind::document || mask == MaskKind::tree ||
         mask == MaskKind::materialized_bool || mask == MaskKind::materialized_additive ||
         mask == MaskKind::materialized_bits;
}

// Whether each score asks for numbers from memory, or for what a user or several masks say.
bool asks_about_scores(const PrefillConfig& config) {
  return config.mask == MaskKind::materialized_additive || config.mask == MaskKind::custom ||
         config.mask == MaskKind::composed ||
         config.score_modifier == ScoreModifier::additive_bias ||
         config.score_modifier == ScoreModifier::custom;
}

// Whether 32 rows of a warp, with their output and scores, leave registers for what else the call
// asks of them.
bool has_registers_for_32_rows(const PrefillConfig& config) {
  constexpr int few_columns = 96;
  constexpr int most_columns = 128;
  const bool converts = size_bytes(config.dtype_q) == 1 || size_bytes(config.dtype_kv) == 1 ||
                        size_bytes(config.dtype_rope) == 1 || size_bytes(config.dtype_out) == 1;
  if (converts || config.head_dim_v > most_columns || asks_about_scores(config)) {
    return false;
  }
  if (config.head_dim_qk <= few_columns && config.head_dim_v <= few_columns) {
    return true;
  }
  if (config.value_source == ValueSource::prefix_of_k && config.head_dim_qk > most_columns) {
    return false;
  }
  const bool is_plain = config.mask == MaskKind::none || config.mask == MaskKind::causal;
  const bool has_place_for_mask =
      is_plain || (config.head_dim_qk <= most_columns && !reads_memory(config.mask));
  return has_place_for_mask && config.score_modifier == ScoreModifier::none &&
         config.sparsity_block == 0;
}

// Whether 16 rows of a warp, with scores of 64 keys, leave registers for what the call makes of
// each.
bool has_registers_for_64_keys(const PrefillConfig& config) {
  constexpr int most_columns = 128;
  return config.head_dim_v <= most_columns ||
         (config.score_modifier != ScoreModifier::additive_bias &&
          config.score_modifier != ScoreModifier::custom);
}

std::span<const RowTile> tiles_for(const PrefillConfig& config) {
  constexpr int most_columns_of_16_rows = 256;
  if (config.head_dim_v > most_columns_of_16_rows) {
    return wide_tiles;
  }
  return has_registers_for_32_rows(config) ? std::span<const RowTile>(narrow_tiles) : middle_tiles;
}

// The first tile that fits, of `tiles` and, within each, of `key_blocks`.
std::optional<PrefillConfig> first_that_fits(PrefillConfig config, std::span<const RowTile> tiles,
                                             std::span<const int> key_blocks, int bytes) {
  for (const RowTile& tile : tiles) {
    config.block_m = tile.block_m;
    config.num_warps = tile.num_warps;
    config.column_warps = tile.column_warps;
    for (const int block_n : key_blocks) {
      config.block_n = block_n;
      config.shared_memory_bytes = shared_memory_bytes(config);
      if (config.shared_memory_bytes <= bytes) {
        return config;
      }
    }
  }
  return std::nullopt;
}

// Wide windows and chunks hide the same as unbounded ones, and places then count in 32 bits.
int bounded_window(int keys) {
  constexpr int most_keys = 1 << 30;
  return std::min(keys, most_keys);
}

// A formula that comes to one mask is that mask.
void set_mask(const AttentionDescriptor& descriptor, PrefillConfig& config) {
  config.mask = descriptor.mask;
  if (descriptor.mask == MaskKind::composed) {
    config.mask_clauses = mask_formula_of(descriptor);
  }
  if (config.mask_clauses.clauses.size() == 1 &&
      std::has_single_bit(config.mask_clauses.clauses.front())) {
    config.mask = static_cast<MaskKind>(std::countr_zero(config.mask_clauses.clauses.front()));
    config.mask_clauses = {};
  }
  config.mask_expression = descriptor.mask_expression;
}

PrefillConfig config_for(const AttentionDescriptor& descriptor) {
  PrefillConfig config;
  // Every fp8 value is a bf16 value.
  config.dtype = size_bytes(descriptor.dtype_q) == 2 ? descriptor.dtype_q : DataType::bf16;
  config.dtype_q = descriptor.dtype_q;
  config.dtype_kv = descriptor.dtype_kv;
  config.dtype_out = descriptor.dtype_out;
  config.scales_q = descriptor.scales_q;
  config.scales_kv = descriptor.scales_kv;
  config.scale_block = descriptor.scale_block;
  config.head_dim_qk = descriptor.head_dim_qk;
  config.head_dim_v = descriptor.head_dim_v;
  config.q_per_kv = descriptor.q_per_kv();
  if (descriptor.operation == Operation::mla_prefill_rope) {
    config.head_dim_rope = descriptor.head_dim_qk - descriptor.head_dim_v;
    config.rope_page_size = descriptor.page_size;
    config.dtype_rope = descriptor.dtype_rope;
    config.scales_rope = descriptor.scales_rope;
    config.q_rope_apart = descriptor.q_rope_apart;
  } else {
    config.page_size = descriptor.page_size;
  }
  config.value_source = descriptor.value_source;
  set_mask(descriptor, config);
  config.window_left = bounded_window(descriptor.window_left);
  config.window_right = bounded_window(descriptor.window_right);
  config.chunk_size = bounded_window(descriptor.chunk_size);
  config.dtype_mask = descriptor.dtype_mask;
  config.score_modifier = descriptor.score_modifier;
  config.dtype_bias = descriptor.dtype_bias;
  config.score_expression = descriptor.score_expression;
  config.sparsity_block = descriptor.sparsity_block;
  config.has_sinks = descriptor.has_sinks;
  return config;
}

}  // namespace

CombinePrefillConfig combine_for(const PrefillConfig& prefill) {
  constexpr int num_threads = 128;
  return {.dtype_out = prefill.dtype_out,
          .head_dim_v = prefill.head_dim_v,
          .q_per_kv = prefill.q_per_kv,
          .head_dim_rope = prefill.head_dim_rope,
          .block_m = prefill.block_m,
          .has_sinks = prefill.has_sinks,
          .num_threads = num_threads};
}

PrefillConfig select_prefill(const AttentionDescriptor& descriptor, const TargetDevice& device) {
  const PrefillConfig config = config_for(descriptor);
  std::span<const RowTile> tiles = tiles_for(config);
  const std::int64_t rows =
      std::int64_t{descriptor.max_seqlen_q} * config.q_per_kv;  // 0: any number
  if (rows > 0 && rows <= tiles.back().block_m) {
    tiles = tiles.last(1);
  }
  constexpr std::array<int, 2> key_blocks = {64, 32};
  constexpr std::array<int, 1> least_key_block = {16};
  const int bytes = device.shared_memory_per_block;
  const std::span<const int> blocks = key_blocks;
  auto fitted = first_that_fits(config, tiles,
                                blocks.subspan(has_registers_for_64_keys(config) ? 0 : 1), bytes);
  if (!fitted) {
    fitted = first_that_fits(config, tiles, least_key_block, bytes);
  }
  if (!fitted) {
    throw DescriptorError({{"head_dim_qk", fmt::format("{}", descriptor.head_dim_qk),
                            fmt::format("no tile fits in the {} bytes of shared memory of {} ({})",
                                        bytes, device.name, device.arch),
                            "use a GPU with more shared memory per block"}});
  }
  return *fitted;
}

}  // namespace attnjit
