#include "size_cap.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "atomic_file.hpp"
#include "cache_counters.hpp"
#include "entry_layout.hpp"
#include "entry_tree.hpp"
#include "lock_file.hpp"
#include "quarantine.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

constexpr std::time_t seconds_of_a_day = 86400;
constexpr std::string_view cleanup_lock_name = "cleanup";

struct TreeFile {
  fs::path path;
  std::uint64_t bytes = 0;
  timespec used = {};
};

struct TreeFiles {
  std::vector<TreeFile> entries;
  std::vector<TreeFile> temporary;
  std::vector<TreeFile> quarantined;
};

TreeFiles scan(const fs::path& directory) {
  TreeFiles files;
  for_each_file(directory, [&](const fs::path& shard, const std::string& name) {
    struct stat status = {};
    if (::lstat((shard / name).c_str(), &status) != 0) {
      return;
    }
    TreeFile file{shard / name, static_cast<std::uint64_t>(status.st_size), status.st_mtim};
    if (is_hex(name, digest_digits - shard_digits)) {
      files.entries.push_back(std::move(file));
    } else if (name.starts_with(temporary_prefix)) {
      files.temporary.push_back(std::move(file));
    } else if (name.ends_with(quarantine_suffix)) {
      files.quarantined.push_back(std::move(file));
    }
  });
  return files;
}

std::uint64_t total_bytes(const std::vector<TreeFile>& files) {
  std::uint64_t bytes = 0;
  for (const TreeFile& file : files) {
    bytes += file.bytes;
  }
  return bytes;
}

// Only the file that was looked at: one that was used or replaced meanwhile stays.
bool remove_file(const TreeFile& file) {
  struct stat now = {};
  return ::lstat(file.path.c_str(), &now) == 0 && now.st_mtim.tv_sec == file.used.tv_sec &&
         now.st_mtim.tv_nsec == file.used.tv_nsec && ::unlink(file.path.c_str()) == 0;
}

void remove_counted(const TreeFile& file, CleanupMode mode, RemovedFiles& removed) {
  if (mode == CleanupMode::report || remove_file(file)) {
    removed.count += 1;
    removed.bytes += file.bytes;
  }
}

// A time in the future was written under a clock that was wrong: it says nothing, so the file
// counts as the oldest.
std::time_t last_used(const TreeFile& file, std::time_t now) {
  return file.used.tv_sec > now + seconds_between_touches ? 0 : file.used.tv_sec;
}

void evict(std::vector<TreeFile>& entries, const CleanupRequest& request, CleanupReport& report) {
  std::uint64_t left = total_bytes(entries);
  if (left > request.max_bytes) {
    std::sort(entries.begin(), entries.end(), [&](const TreeFile& a, const TreeFile& b) {
      return std::pair(last_used(a, request.now), a.path) <
             std::pair(last_used(b, request.now), b.path);
    });
    for (const TreeFile& entry : entries) {
      if (left <= request.target_bytes || last_used(entry, request.now) >= request.session_start) {
        break;
      }
      const std::uint64_t before = report.evicted.bytes;
      remove_counted(entry, request.mode, report.evicted);
      left -= report.evicted.bytes - before;
    }
  }
  report.kept_entries = entries.size() - report.evicted.count;
  report.kept_bytes = left;
}

// "v0" while entries are in v1; trees of later versions belong to a later attnjit.
bool is_old_tree(const std::string& name) {
  unsigned number = 0;
  unsigned current = 0;
  const auto parse = [](std::string_view text, unsigned& value) {
    const char* end = text.data() + text.size();
    return text.size() > 1 && text.front() == 'v' &&
           std::from_chars(text.data() + 1, end, value).ptr == end;
  };
  return parse(entry_tree_name, current) && parse(name, number) && number < current;
}

void remove_old_trees(const fs::path& directory, CleanupMode mode, CleanupReport& report) {
  std::error_code error;
  for (fs::directory_iterator tree(directory, error), end; !error && tree != end;
       tree.increment(error)) {
    const std::string name = tree->path().filename().string();
    std::error_code ignored;
    if (is_old_tree(name) && tree->symlink_status(ignored).type() == fs::file_type::directory) {
      report.old_trees.push_back(name);
      if (mode == CleanupMode::remove) {
        fs::remove_all(tree->path(), ignored);
      }
    }
  }
  std::sort(report.old_trees.begin(), report.old_trees.end());
}

}  // namespace

bool is_touch_due(const struct stat& status, std::time_t now) {
  return std::abs(now - status.st_mtim.tv_sec) > seconds_between_touches;
}

void touch(const fs::path& path) {
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

CleanupReport clean_up(const fs::path& directory, FileModes modes, const CleanupRequest& request) {
  CleanupReport report;
  std::optional<KeyLock> lock;
  if (request.mode == CleanupMode::remove) {  // what is only counted needs none, nor to be written
    lock.emplace(lock_file(directory / lock_tree_name / cleanup_lock_name, modes,
                           {.notice = {}, .limit = {}, .on_wait = {}}));
    if (!lock->is_held()) {
      report.is_busy = lock->refusal() == LockRefusal::busy;
      report.problem = lock->problem();
      return report;
    }
  }
  report.is_done = true;
  TreeFiles files = scan(directory);
  for (const TreeFile& file : files.temporary) {
    if (std::abs(request.now - file.used.tv_sec) > seconds_of_a_day) {
      remove_counted(file, request.mode, report.temporary);
    }
  }
  for (const TreeFile& file : files.quarantined) {
    if (request.removes_quarantined) {
      remove_counted(file, request.mode, report.quarantined);
    }
  }
  evict(files.entries, request, report);
  if (request.removes_old_trees) {
    remove_old_trees(directory, request.mode, report);
  }
  if (request.mode == CleanupMode::remove) {
    compact_statistics(directory, modes);
  }
  return report;
}

std::uint64_t SizeCap::note_put(const fs::path& directory, FileModes modes, std::uint64_t bytes) {
  // Others put too: how much is only known for sure right after counting. Counting again after each
  // 64th of the cap bounds by how much several processes can pass it.
  constexpr std::uint64_t parts_between_counts = 64;
  const std::scoped_lock lock(mutex_);
  unseen_bytes_ += bytes;
  const bool passes_cap = seen_bytes_ <= max_bytes_ && seen_bytes_ + unseen_bytes_ > max_bytes_;
  if (is_counted_ && unseen_bytes_ <= max_bytes_ / parts_between_counts && !passes_cap) {
    return 0;
  }
  const CleanupReport report = clean_up(directory, modes,
                                        {.max_bytes = max_bytes_,
                                         .target_bytes = max_bytes_ - max_bytes_ / 10,
                                         .now = std::time(nullptr),
                                         .session_start = session_start_});
  if (report.is_done) {
    is_counted_ = true;
    seen_bytes_ = report.kept_bytes;
    unseen_bytes_ = 0;
  }
  return report.evicted.count;
}

}  // namespace attnjit
