// A damaged entry is put aside, not deleted: somebody may want to know what damaged it. Private;
// thread-safe, also between processes.
#pragma once

#include <filesystem>
#include <string_view>

#include <sys/stat.h>

namespace attnjit {

constexpr std::string_view quarantine_suffix = ".bad";

// Renames the entry file at `path` to <name>.bad if it still is the file of `status`; removes it
// where its shard holds two such files already. False if it is not there any more or cannot be
// moved.
bool move_to_quarantine(const std::filesystem::path& path, const struct stat& status);

}  // namespace attnjit
