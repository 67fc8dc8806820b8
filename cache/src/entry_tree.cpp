#include "entry_tree.hpp"

#include <algorithm>
#include <string>
#include <system_error>

#include "entry_layout.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

// Calls visit(entry) for what `directory` holds; for nothing where it cannot be read.
template <typename Visit>
void for_each_in(const fs::path& directory, Visit visit) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    visit(*entry);
  }
}

bool is_regular(const fs::directory_entry& place) {
  std::error_code error;
  return place.symlink_status(error).type() == fs::file_type::regular;
}

// Calls visit(shard, place) for what lies in the shards below `directory`.
template <typename Visit>
void for_each_place(const fs::path& directory, Visit visit) {
  for_each_in(directory / entry_tree_name, [&](const fs::directory_entry& shard) {
    if (is_hex(shard.path().filename().string(), shard_digits)) {
      for_each_in(shard.path(),
                  [&](const fs::directory_entry& place) { visit(shard.path(), place); });
    }
  });
}

}  // namespace

void for_each_file(
    const fs::path& directory,
    const std::function<void(const fs::path& shard, const std::string& name)>& visit) {
  for_each_place(directory, [&](const fs::path& shard, const fs::directory_entry& place) {
    if (is_regular(place)) {
      visit(shard, place.path().filename().string());
    }
  });
}

std::vector<StoredEntry> list_entries(const fs::path& directory) {
  std::vector<StoredEntry> entries;
  for_each_place(directory, [&](const fs::path& shard, const fs::directory_entry& place) {
    const std::string name = place.path().filename().string();
    if (!is_hex(name, digest_digits - shard_digits)) {
      return;
    }
    // A file that vanishes meanwhile is left out.
    std::error_code error;
    const std::uintmax_t bytes = is_regular(place) ? fs::file_size(place.path(), error) : 0;
    if (!error) {
      entries.push_back({shard.filename().string() + name, place.path(), bytes});
    }
  });
  std::sort(entries.begin(), entries.end(), [](const StoredEntry& left, const StoredEntry& right) {
    return left.digest < right.digest;
  });
  return entries;
}

}  // namespace attnjit
