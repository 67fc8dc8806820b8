// Bytes by key on disk, safe between threads and processes: atomic publish, verified read; a
// problem on either side costs a compile, never an error. Knows nothing of kernels or CUDA.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/cache_cleanup.hpp"
#include "attnjit/cache_entry.hpp"
#include "attnjit/cache_key.hpp"
#include "attnjit/cache_layer.hpp"
#include "attnjit/cache_lookup.hpp"
#include "attnjit/cache_options.hpp"
#include "attnjit/key_lock.hpp"

namespace attnjit {

// What one place of a cache says of one key.
struct LayerProbe {
  std::string place;  // path of directory or layer; "memory" where there is none
  CacheLookup lookup;
};

// All members may be called from any thread. Neither copied nor moved: one cache, one set of
// counters and warnings. Members that take a key throw std::invalid_argument for a digest that is
// not 32 lower-case hex digits.
class DiskCache {
 public:
  using WarningHandler = CacheWarningHandler;

  // `warn` is called at most once for each place in the cache's life: of the directory that is
  // written, by the first get or put that finds it untrusted or the first put that could not
  // publish; of a layer, by the first get that finds it missing or unusable. On that call's thread;
  // it may be empty.
  DiskCache(CacheOptions options, WarningHandler warn);

  // A directory alone, the rest by default; made on the first put. nullopt = memory only: every get
  // is a miss.
  DiskCache(std::optional<std::filesystem::path> directory, WarningHandler warn);

  // Flushes the counters.
  ~DiskCache();

  // Reads and verifies the entry of `key`, in the written directory or else in the layers in their
  // order. Never throws for what is on disk. A damaged entry in the written directory is put aside;
  // a hit there is marked as used. Of a miss the detail names every place and its reason; the
  // reason is the first that says more than that there is none.
  CacheLookup get(const CacheKey& key) const;

  // The same without counting, for a second look or for what is no kernel.
  CacheLookup find(const CacheKey& key) const;

  // Every place in order, also after one that has the entry; changes and counts nothing.
  std::vector<LayerProbe> probe(const CacheKey& key) const;

  // Publishes atomically, in place of what was there. False, after a warning, if it could not; the
  // caller goes on with its own bytes. May evict entries that were not used since this cache was
  // constructed.
  bool put(const CacheKey& key, std::string_view metadata, std::string_view payload);

  // Waits until nobody else makes the entry of `key`, and keeps others waiting while the result
  // lives. Look again once it is held: another maker may have put it meanwhile. Never throws for
  // what is on disk.
  KeyLock lock(const CacheKey& key, const LockPatience& patience) const;

  // All that lies where an entry of the written directory lies, sorted by digest; unverified. A
  // directory, link or pipe in the place of a file has 0 bytes, and reads as a miss. Reading one:
  // read_entry(path).
  std::vector<StoredEntry> list() const;

  // Puts an entry of list() aside that is whole and yet of no use. False if it cannot be moved.
  bool quarantine(const StoredEntry& entry) const;

  // Removes leftovers from the written directory and, beyond `max_bytes`, the entries that were
  // used least recently, also those of this session. Not done where another process does it or no
  // lock can be made; a report needs no lock.
  CleanupReport collect_garbage(std::uint64_t max_bytes, CleanupMode mode) const;

  // Counts that a hit has saved a compile of so long.
  void count_saved_compile(std::chrono::microseconds time) const;

  // Appends the counts since the last time to the directory's statistics, if the directory is
  // there. A put does so too, and one get in 256, so that a process that is killed loses little.
  void flush_counters() const;

  // Why the written directory is not used; empty if it is, or is not there yet.
  std::string trust_problem() const;

  const std::optional<std::filesystem::path>& directory() const;
  const std::vector<CacheLayer>& layers() const;
  const CacheOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attnjit
