#include "tuning_knobs.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attention_kernels.hpp"
#include "kernel_template.hpp"
#include "shared_memory_plan.hpp"

namespace attnjit {
namespace {

using Violations = std::vector<Violation>;

void require(bool holds, const char* knob, int value, std::string rule, const char* fix,
             Violations& violations) {
  if (!holds) {
    violations.push_back({knob, fmt::format("{}", value), std::move(rule), fix});
  }
}

void require_between(const char* knob, int value, int least, int most, Violations& violations) {
  require(value >= least && value <= most, knob, value,
          fmt::format("must be between {} and {}", least, most), "choose a value between them",
          violations);
}

template <std::size_t count>
void require_one_of(const char* knob, int value, const std::array<int, count>& values,
                    Violations& violations) {
  require(std::find(values.begin(), values.end(), value) != values.end(), knob, value,
          fmt::format("must be one of {}", fmt::join(values, ", ")), "choose one of them",
          violations);
}

void set(const std::optional<int>& knob, int& field) {
  field = knob.value_or(field);
}

void require_fit(int bytes, const TargetDevice& device, Violations& violations) {
  require(bytes <= device.shared_memory_per_block, "shared_memory_bytes", bytes,
          fmt::format("must be at most the {} bytes of a block of {}",
                      device.shared_memory_per_block, device.name),
          "choose fewer boxes, stages or keys", violations);
}

void apply(const TuningKnobs& knobs, const TargetDevice& device, SwappedDecodeConfig& config,
           Violations& violations) {
  const int boxes = config.head_dim_qk / box_columns;
  set(knobs.ring_boxes, config.ring_boxes);
  require_between("ring_boxes", config.ring_boxes, boxes, 2 * boxes - 1, violations);
  config.shared_memory_bytes = shared_memory_bytes(config);
  require_fit(config.shared_memory_bytes, device, violations);
}

void apply(const TuningKnobs&, const TargetDevice&, SeesawDecodeConfig&, Violations&) {}

// As device/decode_block.cuh lays warps over a tile of scores, and columns of the output over
// warps.
void check_warps(const PagedDecodeConfig& config, Violations& violations) {
  constexpr int most_accumulators = 144;  // of the output, per thread: 64 rows of 576 columns
  const int row_tiles = config.block_m / 16;
  const int warps_m = std::clamp(config.num_warps * 16 / config.block_n, 1, row_tiles);
  const int warps_n = config.num_warps / warps_m;
  const bool is_even = warps_m * warps_n == config.num_warps && row_tiles % warps_m == 0 &&
                       config.block_n % (8 * warps_n) == 0;
  require(is_even, "num_warps", config.num_warps,
          fmt::format("must share {} rows and {} keys out evenly, in 16 and 8", config.block_m,
                      config.block_n),
          "choose fewer warps, or a larger tile", violations);
  const int value_tiles = (config.head_dim_v / 8 + config.num_warps - 1) / config.num_warps;
  require(row_tiles * value_tiles * 4 <= most_accumulators, "num_warps", config.num_warps,
          fmt::format("must leave a thread at most {} accumulators", most_accumulators),
          "choose more warps, or fewer rows", violations);
}

void apply(const TuningKnobs& knobs, const TargetDevice& device, PagedDecodeConfig& config,
           Violations& violations) {
  set(knobs.block_m, config.block_m);
  set(knobs.block_n, config.block_n);
  set(knobs.num_warps, config.num_warps);
  set(knobs.num_stages, config.num_stages);
  const std::size_t before = violations.size();
  require_one_of("block_m", config.block_m, std::array{16, 32, 64}, violations);
  require_one_of("block_n", config.block_n, std::array{32, 64}, violations);
  require_one_of("num_warps", config.num_warps, std::array{4, 8}, violations);
  require_between("num_stages", config.num_stages, 2, 4, violations);
  if (violations.size() == before) {
    check_warps(config, violations);
    config.shared_memory_bytes = shared_memory_bytes(config);
    require_fit(config.shared_memory_bytes, device, violations);
  }
}

template <typename Config>
void apply(const TuningKnobs&, const TargetDevice&, Config&, Violations&) {}

// A knob that the decode does not have.
void refuse_foreign(const std::optional<int>& knob, const char* name, std::string_view owner,
                    Violations& violations) {
  if (knob) {
    violations.push_back(
        {name, fmt::format("{}", *knob), fmt::format("is no knob of {}", owner), "remove it"});
  }
}

}  // namespace

void apply_attention_knobs(const TuningKnobs& knobs, const TargetDevice& device,
                           KernelConfig& attention, Violations& violations) {
  std::visit([&](auto& config) { apply(knobs, device, config, violations); }, attention);
  const std::string_view name = template_of(attention).name;
  if (!std::holds_alternative<SwappedDecodeConfig>(attention)) {
    refuse_foreign(knobs.ring_boxes, "ring_boxes", name, violations);
  }
  if (!std::holds_alternative<PagedDecodeConfig>(attention)) {
    refuse_foreign(knobs.block_m, "block_m", name, violations);
    refuse_foreign(knobs.block_n, "block_n", name, violations);
    refuse_foreign(knobs.num_warps, "num_warps", name, violations);
    refuse_foreign(knobs.num_stages, "num_stages", name, violations);
  }
}

void apply_combine_knobs(const TuningKnobs& knobs, bool batch_invariant, CombineConfig& combine,
                         Violations& violations) {
  set(knobs.combine_warps, combine.num_warps);
  require_one_of("combine_warps", combine.num_warps, std::array{8, 16}, violations);
  if (!batch_invariant) {
    refuse_foreign(knobs.segment_pieces, "segment_pieces", "a decode that may follow its batch",
                   violations);
    return;
  }
  set(knobs.segment_pieces, combine.segment_pieces);
  require_one_of("segment_pieces", combine.segment_pieces, std::array{4, 8, 16}, violations);
}

void apply_schedule_knobs(const TuningKnobs& knobs, bool batch_invariant, ScheduleConfig& schedule,
                          Violations& violations) {
  constexpr int most_units = 1 << 20;
  constexpr int most_chunk_keys = 4096;
  if (batch_invariant) {
    constexpr std::string_view owner = "a batch-invariant decode, whose cuts weigh nothing";
    refuse_foreign(knobs.piece_units, "piece_units", owner, violations);
    refuse_foreign(knobs.block_percent, "block_percent", owner, violations);
    set(knobs.chunk_blocks, schedule.chunk_blocks);
    require_between("chunk_blocks", schedule.chunk_blocks, 1, most_chunk_keys / schedule.block_n,
                    violations);
    return;
  }
  refuse_foreign(knobs.chunk_blocks, "chunk_blocks", "a decode that may follow its batch",
                 violations);
  set(knobs.piece_units, schedule.piece_units);
  set(knobs.block_percent, schedule.block_percent);
  require_between("piece_units", schedule.piece_units, 0, most_units, violations);
  require_between("block_percent", schedule.block_percent, 1, 100, violations);
}

}  // namespace attnjit
