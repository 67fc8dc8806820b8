// Bytes by key on disk, safe between threads and processes: atomic publish, verified read; a
// problem on either side costs a compile, never an error. Knows nothing of kernels or CUDA.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/cache_entry.hpp"
#include "attnjit/cache_key.hpp"
#include "attnjit/key_lock.hpp"

namespace attnjit {

enum class MissReason {
  absent,       // no entry
  disabled,     // no usable directory: memory only
  unreadable,   // an I/O error or missing permission
  corrupt,      // not a whole entry: length or checksum
  version,      // written by another format version
  key_differs,  // another key's text under this digest or name
};
std::string_view to_string(MissReason);

struct CacheLookup {
  std::optional<CacheEntry> entry;         // set on a hit
  MissReason reason = MissReason::absent;  // of a miss
  std::string detail;                      // of a miss: path and cause, for people
};

struct StoredEntry {
  std::string digest;
  std::filesystem::path path;
  std::uint64_t bytes = 0;
};

// Where the cache lives: `option` if not empty, else $ATTNJIT_CACHE_DIR, else
// $XDG_CACHE_HOME/attnjit, else $HOME/.cache/attnjit, else .cache/attnjit in the home directory of
// the user database, else none (memory only). A relative option or ATTNJIT_CACHE_DIR is taken from
// the current directory, now; relative XDG_CACHE_HOME and HOME are ignored, as the XDG
// specification asks. Nothing is made or checked on disk.
std::optional<std::filesystem::path> resolve_cache_directory(const std::filesystem::path& option);

// All members may be called from any thread. Neither copied nor moved: one cache, one warning.
// get and put throw std::invalid_argument for a digest that is not 32 lower-case hex digits.
class DiskCache {
 public:
  using WarningHandler = std::function<void(std::string_view)>;

  // Uses `directory`, made on the first put; nullopt = memory only: every get is a miss. `warn` is
  // called at most once in the cache's life, by the first put that could not publish, on that
  // put's thread; it may be empty.
  DiskCache(std::optional<std::filesystem::path> directory, WarningHandler warn);

  // Reads and verifies the entry of `key`. Never throws for what is on disk.
  CacheLookup get(const CacheKey& key) const;

  // Publishes atomically, in place of what was there. False, after one warning, if it could not;
  // the caller goes on with its own bytes.
  bool put(const CacheKey& key, std::string_view metadata, std::string_view payload);

  // Waits until nobody else makes the entry of `key`, and keeps others waiting while the result
  // lives. Look again once it is held: another maker may have put it meanwhile. Never throws for
  // what is on disk.
  KeyLock lock(const CacheKey& key, const LockPatience& patience) const;

  // Every entry file, sorted by digest; unverified. Reading one: read_entry(path).
  std::vector<StoredEntry> list() const;

  const std::optional<std::filesystem::path>& directory() const { return directory_; }

 private:
  void warn_once(std::string_view problem);

  std::optional<std::filesystem::path> directory_;
  WarningHandler warn_;
  std::atomic<bool> warned_ = false;
};

// Reads and verifies one entry file; a miss with its reason otherwise.
CacheLookup read_entry(const std::filesystem::path& path);

}  // namespace attnjit
