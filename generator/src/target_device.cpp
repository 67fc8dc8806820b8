#include "attnjit/target_device.hpp"

#include <algorithm>
#include <array>

namespace attnjit {
namespace {

constexpr int kib = 1024;
constexpr int mib = 1024 * kib;

// Shared memory: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
// SM counts and L2: the vendor's datasheets. An arch name means the first card listed with it.
const std::array<TargetDevice, 13> presets = {{
    {"a100", "sm_80", 80, 108, 163 * kib, 164 * kib, 40 * mib},
    {"rtx3090", "sm_86", 86, 82, 99 * kib, 100 * kib, 6 * mib},
    {"a10", "sm_86", 86, 72, 99 * kib, 100 * kib, 6 * mib},
    {"rtx4090", "sm_89", 89, 128, 99 * kib, 100 * kib, 72 * mib},
    {"l4", "sm_89", 89, 58, 99 * kib, 100 * kib, 48 * mib},
    {"l40s", "sm_89", 89, 142, 99 * kib, 100 * kib, 96 * mib},
    {"h100", "sm_90a", 90, 132, 227 * kib, 228 * kib, 50 * mib},
    {"h200", "sm_90a", 90, 132, 227 * kib, 228 * kib, 60 * mib},
    {"h20", "sm_90a", 90, 78, 227 * kib, 228 * kib, 60 * mib},
    {"b200", "sm_100", 100, 148, 227 * kib, 228 * kib, 126 * mib},
    {"gb200", "sm_100", 100, 152, 227 * kib, 228 * kib, 126 * mib},
    {"rtx5090", "sm_120", 120, 170, 99 * kib, 100 * kib, 96 * mib},
    {"rtxpro6000", "sm_120", 120, 188, 99 * kib, 100 * kib, 128 * mib},
}};

}  // namespace

std::span<const TargetDevice> target_device_presets() {
  return presets;
}

std::optional<TargetDevice> find_target_device(std::string_view name) {
  const auto found = std::find_if(presets.begin(), presets.end(), [&](const TargetDevice& device) {
    return device.name == name || device.arch == name;
  });
  if (found == presets.end()) {
    return std::nullopt;
  }
  return *found;
}

}  // namespace attnjit
