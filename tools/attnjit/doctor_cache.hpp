// What attnjit doctor says of the cache directory: entries, file system, room, permission. Reads
// only, makes nothing; thread-safe.
#pragma once

#include <filesystem>
#include <optional>

#include "doctor_findings.hpp"

namespace attnjit {

// nullopt: no directory could be resolved.
Finding examine_cache(const std::optional<std::filesystem::path>& directory);

}  // namespace attnjit
