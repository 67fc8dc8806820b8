// What attnjit doctor says of the cache directory: entries, file system, room, permission. Reads
// only, makes nothing; thread-safe.
#pragma once

#include <vector>

#include "attnjit/cache_options.hpp"
#include "doctor_findings.hpp"

namespace attnjit {

// The written directory and who could have written it, then each layer: one finding each.
std::vector<Finding> examine_cache(const CacheOptions& options);

}  // namespace attnjit
