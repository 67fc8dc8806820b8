// Cache key -> the kernel stored under it: the source that was compiled, read back from the entry's
// key text, whatever the templates say today. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/cache_layer.hpp"
#include "attnjit/disk_cache.hpp"
#include "attnjit/kernel_metadata.hpp"
#include "attnjit/rendered_kernel.hpp"
#include "command.hpp"

namespace attnjit {

struct StoredKernel {
  std::string digest;
  std::filesystem::path path;     // of the entry's file, or of the bundle that holds it
  std::uint64_t entry_bytes = 0;  // of the entry
  std::string key_text;
  RenderedKernel kernel;
  KernelMetadata metadata;
  std::size_t cubin_bytes = 0;
};

// An entry that no lookup would serve.
struct DamagedEntry {
  std::string digest;
  MissReason reason;
  std::string detail;  // path and cause
};

// An entry where it lies: in a file of its own, or in a layer of the cache, which it may not
// outlive.
struct PlacedEntry {
  StoredEntry stored;
  const CacheLayer* layer = nullptr;  // null: in the written directory

  CacheLookup read() const { return layer ? layer->read(stored.digest) : read_entry(stored.path); }
};

// All that a cache holds, its layers too; of a key in several places the first. Entries that are
// neither kernels nor damaged (records of toolchains) are in the counts alone.
struct StoredKernels {
  std::vector<StoredKernel> kernels;  // by name, architecture, config, key
  std::vector<DamagedEntry> damaged;  // by key
  std::size_t num_entries = 0;
  std::uint64_t total_bytes = 0;  // of all entries
};

// No kernel, or more than one, is stored under a key; the message lists the near or matching ones.
class UnknownKeyError : public UsageError {
 public:
  using UsageError::UsageError;
};

// True for 6 to 32 hex digits: a key's digest, or enough of its beginning to name it.
bool looks_like_key(std::string_view text);

// The kernel whose digest begins with `prefix`, in either case. Throws UnknownKeyError, and
// std::runtime_error with the reason for an entry that is damaged.
StoredKernel find_stored_kernel(const DiskCache& cache, std::string_view prefix);

// What DiskCache::list() finds, then what layers hold, sorted by digest; of each digest the first
// place.
std::vector<PlacedEntry> list_entry_places(const DiskCache& cache);

// Reads and verifies every entry.
StoredKernels list_stored_kernels(const DiskCache& cache);

// Sources, entry point and target out of the key text of a kernel; nullopt if it is none.
std::optional<RenderedKernel> parse_kernel_key_text(std::string_view key_text);

}  // namespace attnjit
