#include <algorithm>
#include <system_error>
#include <utility>

#include "atomic_file.hpp"
#include "attnjit/cache_bundle.hpp"
#include "bundle_format.hpp"

namespace attnjit {
namespace {

constexpr mode_t readable_by_all = 0644;

// An entry's bytes follow from its parts, so that they are the same wherever it is stored.
std::string read_encoded(const BundleItem& item) {
  const CacheLookup lookup = item.layer->read(item.digest);
  if (!lookup.entry) {
    throw BundleError("entry " + item.digest + " cannot be bundled (" + lookup.detail +
                      "); fix: run again, without it");
  }
  return encode_entry(*lookup.entry);
}

void require(const FileOutcome& outcome, const std::filesystem::path& path) {
  if (!outcome.ok()) {
    throw BundleError(path.string() + ": " + outcome.message());
  }
}

// A bundle replaces a bundle, and nothing that is no file: renaming over a device or a link would
// take it away, and a directory would have to go first.
void require_replaceable(const std::filesystem::path& path) {
  std::error_code error;
  const auto type = std::filesystem::symlink_status(path, error).type();
  if (path.empty() || (type != std::filesystem::file_type::not_found &&
                       type != std::filesystem::file_type::regular)) {
    throw BundleError("output = " + path.string() +
                      ": must be a new file or one to replace, no directory, link or device; fix: "
                      "name a file");
  }
}

}  // namespace

// The index stands before the entries and holds their lengths: everything is read twice, so that
// only one entry at a time is in memory.
std::uint64_t write_bundle(const std::filesystem::path& path, std::vector<BundleItem> items) {
  require_replaceable(path);
  std::sort(items.begin(), items.end(),
            [](const BundleItem& a, const BundleItem& b) { return a.digest < b.digest; });
  std::vector<BundleRow> rows;
  for (const BundleItem& item : items) {
    if (!rows.empty() && rows.back().digest == item.digest) {
      throw BundleError("entry " + item.digest + " is named twice; fix: name it once");
    }
    rows.push_back({.digest = item.digest, .bytes = read_encoded(item).size()});
  }
  const std::string index = encode_bundle_index(rows);
  AtomicFile file;
  require(file.open(path, readable_by_all), path);
  require(file.append(index), path);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string bytes = read_encoded(items[i]);
    if (bytes.size() != rows[i].bytes) {
      throw BundleError("entry " + items[i].digest +
                        " was replaced while the bundle was made; fix: run again");
    }
    require(file.append(bytes), path);
  }
  require(file.publish(), path);
  return rows.empty() ? index.size() : rows.back().offset + rows.back().bytes;
}

}  // namespace attnjit
