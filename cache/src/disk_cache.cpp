#include "attnjit/disk_cache.hpp"

#include <limits>
#include <stdexcept>
#include <utility>

#include <sys/stat.h>

#include "disk_cache_state.hpp"
#include "entry_layout.hpp"
#include "entry_tree.hpp"
#include "lock_file.hpp"
#include "quarantine.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

// A digest becomes a file name, so that anything else could leave the cache directory.
void require_digest(const CacheKey& key) {
  if (!is_hex(key.digest, digest_digits)) {
    throw std::invalid_argument("CacheKey::digest is \"" + key.digest +
                                "\"; allowed are 32 lower-case hex digits, as "
                                "CacheKeyBuilder::finish makes them");
  }
}

}  // namespace

DiskCache::DiskCache(CacheOptions options, WarningHandler warn)
    : state_(new State(std::move(options), std::move(warn))) {}

DiskCache::DiskCache(std::optional<fs::path> directory, WarningHandler warn)
    : DiskCache(CacheOptions{.directory = std::move(directory)}, std::move(warn)) {}

DiskCache::~DiskCache() {
  flush_counters();
}

const std::optional<fs::path>& DiskCache::directory() const {
  return state_->options.directory;
}

const std::vector<CacheLayer>& DiskCache::layers() const {
  return state_->layers;
}

const CacheOptions& DiskCache::options() const {
  return state_->options;
}

CacheLookup DiskCache::find(const CacheKey& key) const {
  require_digest(key);
  return state_->find(key);
}

CacheLookup DiskCache::get(const CacheKey& key) const {
  CacheLookup lookup = find(key);
  if (lookup.entry) {
    state_->counters.count_hit(lookup.entry->payload.size());
  } else {
    state_->counters.count_miss(lookup.reason);
  }
  if (state_->counters.is_flush_due()) {
    flush_counters();
  }
  return lookup;
}

std::vector<LayerProbe> DiskCache::probe(const CacheKey& key) const {
  require_digest(key);
  std::vector<LayerProbe> probes;
  probes.push_back(
      {directory() ? directory()->string() : "memory", state_->find_in_own(key, Upkeep::none)});
  for (const CacheLayer& layer : layers()) {
    probes.push_back({layer.path().string(), layer.find(key)});
  }
  return probes;
}

KeyLock DiskCache::lock(const CacheKey& key, const LockPatience& patience) const {
  require_digest(key);
  CacheLookup refusal;
  const fs::path* directory = state_->own_directory(&refusal);
  if (directory == nullptr) {
    return {LockRefusal::impossible, std::move(refusal.detail)};
  }
  return lock_file(lock_path(*directory, key.digest), state_->modes, patience);
}

bool DiskCache::put(const CacheKey& key, std::string_view metadata, std::string_view payload) {
  require_digest(key);
  CacheLookup refusal;
  const fs::path* directory = state_->own_directory(&refusal);
  if (directory == nullptr) {
    state_->counters.count_failed_put();
    state_->warn_of_put(refusal.detail);
    return false;
  }
  const std::string bytes = encode_entry(
      {.key_text = key.text, .metadata = std::string(metadata), .payload = std::string(payload)});
  const fs::path path = entry_path(*directory, key.digest);
  const FileOutcome outcome = publish_whole_file(path, bytes, state_->modes);
  if (!outcome.ok()) {
    state_->counters.count_failed_put();
    state_->warn_of_put(path.string() + ": " + outcome.message());
    return false;
  }
  state_->counters.count_put(bytes.size());
  state_->counters.count_evictions(state_->cap.note_put(*directory, state_->modes, bytes.size()));
  flush_counters();
  return true;
}

std::vector<StoredEntry> DiskCache::list() const {
  return directory() ? list_entries(*directory()) : std::vector<StoredEntry>();
}

bool DiskCache::quarantine(const StoredEntry& entry) const {
  struct stat status = {};
  if (state_->own_directory(nullptr) == nullptr || ::lstat(entry.path.c_str(), &status) != 0 ||
      !move_to_quarantine(entry.path, status)) {
    return false;
  }
  state_->counters.count_quarantined();
  return true;
}

CleanupReport DiskCache::collect_garbage(std::uint64_t max_bytes, CleanupMode mode) const {
  CacheLookup refusal;
  const fs::path* directory = state_->own_directory(&refusal);
  std::error_code error;
  if (directory == nullptr || !fs::is_directory(*directory, error)) {
    CleanupReport nothing;
    nothing.is_done = directory != nullptr;
    nothing.problem = std::move(refusal.detail);
    return nothing;
  }
  CleanupReport report = clean_up(*directory, state_->modes,
                                  {.max_bytes = max_bytes,
                                   .target_bytes = max_bytes,
                                   .now = std::time(nullptr),
                                   .session_start = std::numeric_limits<std::time_t>::max(),
                                   .removes_quarantined = true,
                                   .removes_old_trees = true,
                                   .mode = mode});
  if (mode == CleanupMode::remove) {
    state_->counters.count_evictions(report.evicted.count);
  }
  return report;
}

void DiskCache::count_saved_compile(std::chrono::microseconds time) const {
  state_->counters.count_saved(static_cast<std::uint64_t>(time.count()));
}

void DiskCache::flush_counters() const {
  if (const fs::path* directory = state_->own_directory(nullptr)) {
    state_->counters.flush(*directory, state_->modes);
  }
}

std::string DiskCache::trust_problem() const {
  CacheLookup refusal;
  return state_->own_directory(&refusal) == nullptr ? refusal.detail : "";
}

}  // namespace attnjit
