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

}  // namespace

void for_each_file(
    const fs::path& directory,
    const std::function<void(const fs::path& shard, const std::string& name)>& visit) {
  for_each_in(directory / entry_tree_name, [&](const fs::directory_entry& shard) {
    if (!is_hex(shard.path().filename().string(), shard_digits)) {
      return;
    }
    for_each_in(shard.path(), [&](const fs::directory_entry& file) {
      std::error_code error;
      if (file.symlink_status(error).type() == fs::file_type::regular) {
        visit(shard.path(), file.path().filename().string());
      }
    });
  });
}

std::vector<StoredEntry> list_entries(const fs::path& directory) {
  std::vector<StoredEntry> entries;
  for_each_file(directory, [&](const fs::path& shard, const std::string& name) {
    std::error_code error;
    if (!is_hex(name, digest_digits - shard_digits)) {
      return;
    }
    // A file that vanishes meanwhile is left out.
    if (const std::uintmax_t bytes = fs::file_size(shard / name, error); !error) {
      entries.push_back({shard.filename().string() + name, shard / name, bytes});
    }
  });
  std::sort(entries.begin(), entries.end(), [](const StoredEntry& left, const StoredEntry& right) {
    return left.digest < right.digest;
  });
  return entries;
}

}  // namespace attnjit
