// How many worker processes fit this machine, or the container's share of it. Reads files below
// `root`, "/" but in tests; thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace attnjit {

struct MachineShare {
  int cores = 1;                              // that this process may use, whole ones, at least 1
  std::optional<std::uint64_t> memory_bytes;  // free for it; nullopt: cannot be known
};

// Cores of the affinity mask, cut by the quotas of the process's cgroup and its parents (cpu.max of
// cgroup v2; cpu.cfs_quota_us of v1); memory by MemAvailable and what their limits leave
// (memory.max and memory.current, without the file cache that can be dropped; memory.limit_in_bytes
// of v1).
MachineShare read_machine_share(const std::filesystem::path& root = "/");

// One worker per core and per 400 MB of free memory, at least one. 400 MB: twice what NVRTC takes
// at most for a kernel of ours.
int workers_that_fit(const MachineShare& share);

}  // namespace attnjit
