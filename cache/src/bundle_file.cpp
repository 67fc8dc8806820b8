#include "bundle_file.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include <unistd.h>

#include "entry_file.hpp"
#include "entry_lookup.hpp"

namespace attnjit {
namespace {

// `bytes.size()` bytes from `offset` on, or as many as there are.
FileOutcome read_at(int descriptor, std::uint64_t offset, std::string& bytes) {
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = retry_interrupted([&] {
      return ::pread(descriptor, bytes.data() + filled, bytes.size() - filled,
                     static_cast<off_t>(offset + filled));
    });
    if (count < 0) {
      return failed("read");
    }
    if (count == 0) {
      break;
    }
    filled += static_cast<std::size_t>(count);
  }
  bytes.resize(filled);
  return {};
}

}  // namespace

BundleFile::BundleFile(FileDescriptor file, std::uint64_t file_bytes, std::filesystem::path path)
    : file_(std::move(file)), path_(std::move(path)), file_bytes_(file_bytes) {
  std::string header(bundle_header_bytes, '\0');
  FileOutcome outcome = read_at(file_.get(), 0, header);
  const auto index_bytes =
      outcome.ok() ? bundle_index_bytes(header, file_bytes, &problem_) : std::nullopt;
  if (index_bytes) {
    std::string index(*index_bytes, '\0');
    outcome = read_at(file_.get(), 0, index);
    if (outcome.ok()) {
      rows_ = decode_bundle_index(index, &problem_).value_or(std::vector<BundleRow>());
    }
  }
  if (!outcome.ok()) {
    problem_ = outcome.message();
  }
  if (!problem_.empty()) {
    reason_ = outcome.ok() ? MissReason::corrupt : MissReason::unreadable;
  }
}

std::uint64_t BundleFile::expected_bytes() const {
  // Rows are back to back in their order; a last one that wraps around is beyond any file.
  if (rows_.empty()) {
    return encoded_index_bytes(0);
  }
  const BundleRow& last = rows_.back();
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  return last.bytes > most - last.offset ? most : last.offset + last.bytes;
}

CacheLookup BundleFile::read(std::string_view digest) const {
  const auto row = std::lower_bound(
      rows_.begin(), rows_.end(), digest,
      [](const BundleRow& left, std::string_view right) { return left.digest < right; });
  if (row == rows_.end() || row->digest != digest) {
    return miss(MissReason::absent, path_, "holds no entry " + std::string(digest));
  }
  const std::string place = path_.string() + ", entry " + std::string(digest);
  if (row->bytes > max_entry_file_bytes) {
    return miss(MissReason::unreadable, place, "longer than an entry may be");
  }
  // Compared before it is subtracted, so that no offset can wrap around.
  if (row->offset > file_bytes_ || row->bytes > file_bytes_ - row->offset) {
    return miss(MissReason::corrupt, place, "the bundle is cut off before its end");
  }
  std::string bytes(static_cast<std::size_t>(row->bytes), '\0');
  if (const FileOutcome outcome = read_at(file_.get(), row->offset, bytes); !outcome.ok()) {
    return miss_of(place, outcome);
  }
  return decode_lookup(bytes, place);
}

}  // namespace attnjit
