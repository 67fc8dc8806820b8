#include "attnjit/disk_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "entry_file.hpp"
#include "entry_format.hpp"
#include "entry_layout.hpp"
#include "lock_file.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view no_directory_problem =
    "no cache directory: neither an option nor ATTNJIT_CACHE_DIR, XDG_CACHE_HOME, HOME or the user "
    "database names one; set ATTNJIT_CACHE_DIR";

CacheLookup miss(MissReason reason, std::string detail) {
  return {.entry = std::nullopt, .reason = reason, .detail = std::move(detail)};
}

CacheLookup miss(MissReason reason, const fs::path& path, std::string_view cause) {
  return miss(reason, path.string() + ": " + std::string(cause));
}

// A digest becomes a file name, so that anything else could leave the cache directory.
void require_digest(const CacheKey& key) {
  if (!is_hex(key.digest, digest_digits)) {
    throw std::invalid_argument("CacheKey::digest is \"" + key.digest +
                                "\"; allowed are 32 lower-case hex digits, as "
                                "CacheKeyBuilder::finish makes them");
  }
}

CacheLookup look_up(const fs::path& directory, const CacheKey& key) {
  const fs::path path = entry_path(directory, key.digest);
  CacheLookup lookup = read_entry(path);
  if (lookup.entry && lookup.entry->key_text != key.text) {
    return miss(MissReason::key_differs, path, "holds the entry of another key");
  }
  return lookup;
}

// Calls visit(entry) for what `directory` holds; for nothing where it cannot be read.
template <typename Visit>
void for_each_in(const fs::path& directory, Visit visit) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    visit(*entry);
  }
}

// One shard's entries. A file that vanishes meanwhile is left out.
void append_shard(const fs::path& shard, std::vector<StoredEntry>& entries) {
  for_each_in(shard, [&](const fs::directory_entry& file) {
    const std::string name = file.path().filename().string();
    std::error_code error;
    if (!is_hex(name, digest_digits - shard_digits) ||
        file.symlink_status(error).type() != fs::file_type::regular) {
      return;
    }
    const std::uintmax_t bytes = file.file_size(error);
    if (!error) {
      entries.push_back({shard.filename().string() + name, file.path(), bytes});
    }
  });
}

}  // namespace

std::string_view to_string(MissReason reason) {
  switch (reason) {
    case MissReason::absent:
      return "absent";
    case MissReason::disabled:
      return "disabled";
    case MissReason::unreadable:
      return "unreadable";
    case MissReason::corrupt:
      return "corrupt";
    case MissReason::version:
      return "version";
    case MissReason::key_differs:
      return "key_differs";
  }
  return "";
}

CacheLookup read_entry(const fs::path& path) {
  std::string bytes;
  if (const FileOutcome outcome = read_whole_file(path, bytes); !outcome.ok()) {
    const bool absent = outcome.error_number == ENOENT;
    return miss(absent ? MissReason::absent : MissReason::unreadable, path, outcome.message());
  }
  std::string problem;
  std::optional<CacheEntry> entry = decode_entry(bytes, &problem);
  if (!entry) {
    const bool other_version =
        claimed_entry_version(bytes).value_or(entry_format_version) != entry_format_version;
    return miss(other_version ? MissReason::version : MissReason::corrupt, path, problem);
  }
  return {.entry = std::move(entry), .reason = MissReason::absent, .detail = ""};
}

DiskCache::DiskCache(std::optional<fs::path> directory, WarningHandler warn)
    : directory_(std::move(directory)), warn_(std::move(warn)) {}

CacheLookup DiskCache::get(const CacheKey& key) const {
  require_digest(key);
  if (!directory_) {
    return miss(MissReason::disabled, std::string(no_directory_problem));
  }
  return look_up(*directory_, key);
}

KeyLock DiskCache::lock(const CacheKey& key, const LockPatience& patience) const {
  require_digest(key);
  if (!directory_) {
    return KeyLock(std::string(no_directory_problem));
  }
  return lock_file(lock_path(*directory_, key.digest), patience);
}

bool DiskCache::put(const CacheKey& key, std::string_view metadata, std::string_view payload) {
  require_digest(key);
  if (!directory_) {
    warn_once(no_directory_problem);
    return false;
  }
  const std::string bytes = encode_entry(
      {.key_text = key.text, .metadata = std::string(metadata), .payload = std::string(payload)});
  const fs::path path = entry_path(*directory_, key.digest);
  const FileOutcome outcome = publish_whole_file(path, bytes);
  if (!outcome.ok()) {
    warn_once(path.string() + ": " + outcome.message());
  }
  return outcome.ok();
}

std::vector<StoredEntry> DiskCache::list() const {
  std::vector<StoredEntry> entries;
  if (!directory_) {
    return entries;
  }
  for_each_in(*directory_ / entry_tree_name, [&](const fs::directory_entry& shard) {
    if (is_hex(shard.path().filename().string(), shard_digits)) {
      append_shard(shard.path(), entries);
    }
  });
  std::sort(entries.begin(), entries.end(), [](const StoredEntry& left, const StoredEntry& right) {
    return left.digest < right.digest;
  });
  return entries;
}

void DiskCache::warn_once(std::string_view problem) {
  if (!warned_.exchange(true) && warn_) {
    warn_("the kernel cache is not written, so kernels are compiled again in the next process (" +
          std::string(problem) + ")");
  }
}

}  // namespace attnjit
