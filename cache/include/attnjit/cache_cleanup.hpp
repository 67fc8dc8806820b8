// Removal of what a cache directory does not need: entries beyond its size, least recently used
// first, and leftovers. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attnjit {

enum class CleanupMode { remove, report };  // report: a dry run, nothing is changed

struct RemovedFiles {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

struct CleanupReport {
  bool is_done = false;
  bool is_busy = false;                // not done, for another process cleans up at the moment
  std::string problem;                 // why it is not done
  RemovedFiles evicted;                // entries
  RemovedFiles temporary;              // left by killed writers more than a day ago
  RemovedFiles quarantined;            // damaged entries that were put aside
  std::vector<std::string> old_trees;  // of earlier format versions, "v0"
  std::uint64_t kept_entries = 0;
  std::uint64_t kept_bytes = 0;
};

}  // namespace attnjit
