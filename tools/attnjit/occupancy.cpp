#include "occupancy.hpp"

#include <algorithm>
#include <array>

namespace attnjit {
namespace {

constexpr int warp_threads = 32;
constexpr int registers_per_sm = 64 * 1024;
constexpr int partitions = 4;       // of a multiprocessor, each with its share of the registers
constexpr int register_unit = 256;  // registers are given to a warp in so many
constexpr int shared_unit = 128;    // bytes
constexpr int reserved_shared_bytes = 1024;  // of each block, for the system

struct ResidenceLimits {
  int compute_capability;
  int warps;   // per multiprocessor
  int blocks;  // per multiprocessor
};

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
constexpr std::array<ResidenceLimits, 9> residence_limits = {{{80, 64, 32},
                                                              {86, 48, 16},
                                                              {87, 48, 16},
                                                              {89, 48, 24},
                                                              {90, 64, 32},
                                                              {100, 64, 32},
                                                              {103, 64, 32},
                                                              {120, 48, 24},
                                                              {121, 48, 24}}};

constexpr int round_up(int value, int unit) {
  return (value + unit - 1) / unit * unit;
}

// Each warp lies in one partition and takes its registers there.
int blocks_by_registers(const BlockNeeds& block, int warps) {
  const int per_warp =
      std::max(round_up(block.registers * warp_threads, register_unit), register_unit);
  if (per_warp * round_up(warps, partitions) > registers_per_sm) {
    return 0;
  }
  return registers_per_sm / partitions / per_warp * partitions / warps;
}

int blocks_by_shared_memory(const BlockNeeds& block, const TargetDevice& device) {
  return device.shared_memory_per_sm /
         round_up(block.shared_bytes + reserved_shared_bytes, shared_unit);
}

}  // namespace

BlockNeeds needs_of(const KernelMetadata& metadata) {
  return {.threads = metadata.num_threads,
          .registers = metadata.resources.registers,
          .shared_bytes = metadata.resources.static_shared_bytes + metadata.shared_memory_bytes};
}

std::optional<Occupancy> calculate_occupancy(const BlockNeeds& block, const TargetDevice& device) {
  const auto* limits = std::find_if(residence_limits.begin(), residence_limits.end(),
                                    [&](const ResidenceLimits& each) {
                                      return each.compute_capability == device.compute_capability;
                                    });
  if (limits == residence_limits.end() || block.threads < 1) {
    return std::nullopt;
  }
  const int warps = round_up(block.threads, warp_threads) / warp_threads;
  struct Limit {
    int blocks;
    std::string_view name;
  };
  // Of equal ones the first: what no kernel can change is no limit of this one.
  const std::array<Limit, 4> candidates = {
      {{limits->warps / warps, "warps"},
       {limits->blocks, "blocks"},
       {blocks_by_registers(block, warps), "registers"},
       {blocks_by_shared_memory(block, device), "shared memory"}}};
  const auto* least = std::min_element(
      candidates.begin(), candidates.end(),
      [](const Limit& left, const Limit& right) { return left.blocks < right.blocks; });
  return Occupancy{.blocks = least->blocks,
                   .warps = least->blocks * warps,
                   .most_warps = limits->warps,
                   .limit = least->name};
}

std::optional<Occupancy> calculate_occupancy(const KernelMetadata& metadata) {
  const std::optional<TargetDevice> device = find_target_device(metadata.arch);
  return device ? calculate_occupancy(needs_of(metadata), *device) : std::nullopt;
}

}  // namespace attnjit
