// What a DiskCache works on. Private to it; thread-safe.
#pragma once

#include <atomic>
#include <ctime>
#include <deque>

#include "attnjit/disk_cache.hpp"
#include "cache_counters.hpp"
#include "cache_trust.hpp"
#include "entry_lookup.hpp"
#include "file_modes.hpp"
#include "size_cap.hpp"

namespace attnjit {

// Whether a get may change what it finds.
enum class Upkeep { none, quarantine_and_touch };

struct DiskCache::State {
  State(CacheOptions cache_options, WarningHandler handler);

  // nullopt, and the reason in *refusal, where there is no directory or it is not trusted.
  const std::filesystem::path* own_directory(CacheLookup* refusal);

  CacheLookup find_in_own(const CacheKey& key, Upkeep upkeep);
  CacheLookup find(const CacheKey& key);

  void warn_once(std::atomic<bool>& is_warned, std::string_view problem) const;
  void warn_of_put(std::string_view problem);

  CacheOptions options;
  FileModes modes;
  WarningHandler warn;
  std::atomic<bool> is_own_warned = false;
  std::atomic<Trust> trust = Trust::unknown;  // of options.directory; judged until it is known
  std::vector<CacheLayer> layers;
  std::deque<std::atomic<bool>> is_layer_warned;  // one for each layer
  std::time_t session_start;
  CacheCounters counters;
  SizeCap cap;

 private:
  TrustVerdict judge();
};

}  // namespace attnjit
