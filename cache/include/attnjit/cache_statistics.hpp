// What a cache directory's users have had of it, summed over processes: each leaves records while
// it runs and when it ends. Plain values; reading is thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>

#include "attnjit/cache_lookup.hpp"

namespace attnjit {

struct CacheStatistics {
  std::uint64_t records = 0;  // of caches that were opened, those summed up earlier included
  std::uint64_t hits = 0;
  std::array<std::uint64_t, miss_reasons.size()> misses = {};  // by reason, in its order
  std::uint64_t puts = 0;
  std::uint64_t failed_puts = 0;
  std::uint64_t evictions = 0;           // entries removed to keep the size
  std::uint64_t quarantined = 0;         // damaged entries put aside
  std::uint64_t bytes_read = 0;          // of hits
  std::uint64_t bytes_written = 0;       // by puts
  std::uint64_t saved_microseconds = 0;  // of compiling, by hits

  CacheStatistics& operator+=(const CacheStatistics& other);
  friend bool operator==(const CacheStatistics&, const CacheStatistics&) = default;
};

// The sum of all records below `directory`; nothing where there are none. A record that was torn or
// damaged is left out.
CacheStatistics read_statistics(const std::filesystem::path& directory);

}  // namespace attnjit
