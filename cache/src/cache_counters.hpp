// Counts what one DiskCache does, in memory, and appends the counts to a file of the directory's
// stats/ when it is told to: one line per record. Private; thread-safe, also between processes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "attnjit/cache_statistics.hpp"
#include "file_modes.hpp"

namespace attnjit {

constexpr std::string_view statistics_tree_name = "stats";

class CacheCounters {
 public:
  void count_hit(std::uint64_t bytes);
  void count_miss(MissReason reason);
  void count_put(std::uint64_t bytes);
  void count_failed_put();
  void count_evictions(std::uint64_t entries);
  void count_quarantined();
  void count_saved(std::uint64_t microseconds);

  // True once in so many lookups: time to flush.
  bool is_flush_due();

  // Appends what was counted since the last time to `directory`, which must be there: nothing is
  // made but its stats/. What cannot be written is lost: statistics cost nobody an error.
  void flush(const std::filesystem::path& directory, FileModes modes);

 private:
  using Counter = std::atomic<std::uint64_t>;

  Counter hits_ = 0;
  std::array<Counter, miss_reasons.size()> misses_ = {};
  Counter puts_ = 0;
  Counter failed_puts_ = 0;
  Counter evictions_ = 0;
  Counter quarantined_ = 0;
  Counter bytes_read_ = 0;
  Counter bytes_written_ = 0;
  Counter saved_microseconds_ = 0;
  Counter lookups_ = 0;
  std::atomic<bool> has_record_ = false;
};

// Where the records of `directory` take more than 64 KiB, replaces them by one, their sum. For one
// process at a time; a record that is appended meanwhile may be lost.
void compact_statistics(const std::filesystem::path& directory, FileModes modes);

}  // namespace attnjit
