// A bundle: many entries in one file that other caches can mount as a layer or import from. The
// same entries make the same bytes. The format is in cache/README.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "attnjit/cache_layer.hpp"

namespace attnjit {

// The bundle cannot be written, or an entry changed while it was made.
class BundleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One entry to export: where it is, and its digest.
struct BundleItem {
  const CacheLayer* layer = nullptr;  // the caller's
  std::string digest;
};

// Writes the entries, sorted by digest, into `path`: in one step, in place of a file that was
// there, mode 0644. Returns the bytes of the file. Throws BundleError, also for an entry that is
// damaged, for a digest that comes twice, and for a path of what is no regular file.
std::uint64_t write_bundle(const std::filesystem::path& path, std::vector<BundleItem> items);

}  // namespace attnjit
