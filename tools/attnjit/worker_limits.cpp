#include "worker_limits.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace attnjit {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t worker_bytes = 400'000'000;

int cores_of_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = sched_getaffinity(0, sizeof(set), &set) == 0;
  return known ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency());
}

// The number that a file of one number holds; nullopt for none, or for the "max" of a cgroup.
std::optional<std::uint64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// The number after `name` in a file of lines "<name> <number> …".
std::optional<std::uint64_t> read_named(const fs::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    std::uint64_t number = 0;
    if (words >> word >> number && word == name) {
      return number;
    }
  }
  return std::nullopt;
}

// The directory of the process's cgroup and those above it, of the hierarchy that controls
// `controller`, or of v2's one hierarchy for "".
std::vector<fs::path> cgroup_directories(const fs::path& root, const std::string& controller) {
  std::ifstream file(root / "proc/self/cgroup");
  std::vector<fs::path> directories;
  for (std::string line; std::getline(file, line);) {  // "<number>:<controllers>:<path>"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers != "," + controller + "," &&
        (controller.empty() || controllers.find("," + controller + ",") == std::string::npos)) {
      continue;
    }
    const fs::path mount = root / "sys/fs/cgroup" / controller;
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    for (; !group.empty(); group = group.parent_path()) {
      directories.push_back(mount / group);
    }
    directories.push_back(mount);
  }
  return directories;
}

template <typename Number>
void lower(std::optional<Number>& least, std::optional<Number> other) {
  if (other) {
    least = least ? std::min(*least, *other) : *other;
  }
}

std::uint64_t left_of(std::uint64_t limit, std::optional<std::uint64_t> used,
                      std::optional<std::uint64_t> droppable) {
  const std::uint64_t kept = used.value_or(0) - std::min(used.value_or(0), droppable.value_or(0));
  return limit - std::min(limit, kept);
}

std::optional<std::uint64_t> memory_left(const fs::path& root) {
  std::optional<std::uint64_t> least;
  if (const auto kilobytes = read_named(root / "proc/meminfo", "MemAvailable:")) {
    least = *kilobytes * 1024;
  }
  for (const fs::path& group : cgroup_directories(root, "")) {
    if (const auto limit = read_number(group / "memory.max")) {
      lower(least, std::optional(left_of(*limit, read_number(group / "memory.current"),
                                         read_named(group / "memory.stat", "inactive_file"))));
    }
  }
  for (const fs::path& group : cgroup_directories(root, "memory")) {
    if (const auto limit = read_number(group / "memory.limit_in_bytes")) {
      lower(least,
            std::optional(left_of(*limit, read_number(group / "memory.usage_in_bytes"),
                                  read_named(group / "memory.stat", "total_inactive_file"))));
    }
  }
  return least;
}

// Whole cores of a quota, rounded up: half a core too many waits, one too few idles.
std::optional<int> cores_of(double quota, double period) {
  return quota > 0 && period > 0
             ? std::optional(static_cast<int>(std::min(1e6, (quota + period - 1) / period)))
             : std::nullopt;
}

std::optional<int> cores_of_quotas(const fs::path& root) {
  std::optional<int> least;
  for (const fs::path& group : cgroup_directories(root, "")) {
    std::ifstream file(group / "cpu.max");  // "<quota> <period>", or "max <period>"
    double quota = 0;
    double period = 0;
    if (file >> quota >> period) {
      lower(least, cores_of(quota, period));
    }
  }
  for (const fs::path& group : cgroup_directories(root, "cpu")) {
    const auto quota = read_number(group / "cpu.cfs_quota_us");  // -1: none
    const auto period = read_number(group / "cpu.cfs_period_us");
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    if (quota && period && *quota <= most) {
      lower(least, cores_of(static_cast<double>(*quota), static_cast<double>(*period)));
    }
  }
  return least;
}

}  // namespace

MachineShare read_machine_share(const fs::path& root) {
  const int cores = std::min(cores_of_affinity(),
                             cores_of_quotas(root).value_or(std::numeric_limits<int>::max()));
  return {.cores = std::max(1, cores), .memory_bytes = memory_left(root)};
}

int workers_that_fit(const MachineShare& share) {
  const std::uint64_t by_memory =
      share.memory_bytes.value_or(std::numeric_limits<std::uint64_t>::max()) / worker_bytes;
  return static_cast<int>(
      std::max<std::uint64_t>(1, std::min(static_cast<std::uint64_t>(share.cores), by_memory)));
}

}  // namespace attnjit
