// The source of a kernel that does not compile, kept beside the cache for whoever looks into it.
// Thread-safe, also between processes.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace attnjit {

struct SavedSource {
  std::filesystem::path path;  // empty if it was not saved
  std::string problem;         // then: why
};

// Writes <directory>/failed/<digest>.cu, mode 0600, in one step; what has the name already is
// replaced. At most 64 sources are kept: no more is saved until some are deleted. `digest` is the
// 32 hex digits of a key. Never throws for what is on disk.
SavedSource save_failed_source(const std::filesystem::path& directory, std::string_view digest,
                               std::string_view source);

}  // namespace attnjit
