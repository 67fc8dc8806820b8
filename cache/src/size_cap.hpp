// Keeps a cache directory below its cap: knows about how much it holds without counting at each
// put, and removes the least recently used entries. An entry's modification time says when it was
// last used, to the hour; it decides which entry goes first, never what is right. Private;
// thread-safe, also between processes.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <mutex>

#include <sys/stat.h>

#include "attnjit/cache_cleanup.hpp"
#include "file_modes.hpp"

namespace attnjit {

constexpr std::time_t seconds_between_touches = 3600;

// Whether a hit on a file of this status should mark it as used: not within an hour of the last
// time, by either way that a clock can be wrong.
bool is_touch_due(const struct stat& status, std::time_t now);

// Marks the file as used now; what refuses it is ignored.
void touch(const std::filesystem::path& path);

struct CleanupRequest {
  std::uint64_t max_bytes = 0;     // above it entries are evicted
  std::uint64_t target_bytes = 0;  // until so many are left
  std::time_t now = 0;
  std::time_t session_start = 0;  // entries used since then stay
  bool removes_quarantined = false;
  bool removes_old_trees = false;
  CleanupMode mode = CleanupMode::remove;
};

// Removes temporary files of more than a day and entries beyond the cap. One process at a time:
// not done where another one is at it.
CleanupReport clean_up(const std::filesystem::path& directory, FileModes modes,
                       const CleanupRequest& request);

class SizeCap {
 public:
  SizeCap(std::uint64_t max_bytes, std::time_t session_start)
      : max_bytes_(max_bytes), session_start_(session_start) {}

  // After a put of so many bytes: cleans up where the cap may be passed. The number of evicted
  // entries.
  std::uint64_t note_put(const std::filesystem::path& directory, FileModes modes,
                         std::uint64_t bytes);

 private:
  std::uint64_t max_bytes_;
  std::time_t session_start_;
  std::mutex mutex_;                // guards what follows
  std::uint64_t unseen_bytes_ = 0;  // put since the directory was last counted
  std::uint64_t seen_bytes_ = 0;    // counted then
  bool is_counted_ = false;
};

}  // namespace attnjit
