// Listing of what lies in a cache directory's tree of entries. Private; thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "attnjit/cache_lookup.hpp"

namespace attnjit {

// Calls visit(shard, name) for every regular file, and no link, in the shards of `directory`; for
// none where that cannot be read.
void for_each_file(
    const std::filesystem::path& directory,
    const std::function<void(const std::filesystem::path& shard, const std::string& name)>& visit);

// All that lies where an entry lies, sorted by digest; unverified. A directory, link or pipe in the
// place of a file has 0 bytes.
std::vector<StoredEntry> list_entries(const std::filesystem::path& directory);

}  // namespace attnjit
