// The GPU as data, so that rendering, compiling and warming need no GPU. Thread-safe value.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace attnjit {

struct TargetDevice {
  std::string name;                 // preset name, e.g. "h200"
  std::string arch;                 // what NVRTC is asked for, with suffix, e.g. "sm_90a"
  int compute_capability = 0;       // 10 * major + minor, e.g. 90
  int num_sms = 0;                  // multiprocessors
  int shared_memory_per_block = 0;  // most dynamic shared memory of one block, bytes
  int shared_memory_per_sm = 0;     // bytes
  int l2_bytes = 0;
};

// Every card known by name, ordered by architecture.
std::span<const TargetDevice> target_device_presets();

// The preset called `name`: a card ("h200"), or an arch ("sm_90a" = its first card).
std::optional<TargetDevice> find_target_device(std::string_view name);

}  // namespace attnjit
