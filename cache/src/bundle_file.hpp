// An open bundle file: its index in memory, its entries read one by one with pread. Private;
// thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/cache_lookup.hpp"
#include "bundle_format.hpp"
#include "file_descriptor.hpp"

namespace attnjit {

class BundleFile {
 public:
  // Of a regular file that is open for reading; `path` names it in messages.
  BundleFile(FileDescriptor file, std::uint64_t file_bytes, std::filesystem::path path);

  // Why nothing can be read, without the path; empty if entries can.
  const std::string& problem() const { return problem_; }
  MissReason reason() const { return reason_; }  // then

  // How long the file is, and how long its index says.
  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint64_t expected_bytes() const;

  CacheLookup read(std::string_view digest) const;
  const std::vector<BundleRow>& rows() const { return rows_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  FileDescriptor file_;
  std::filesystem::path path_;
  std::uint64_t file_bytes_;
  std::vector<BundleRow> rows_;
  std::string problem_;
  MissReason reason_ = MissReason::absent;
};

}  // namespace attnjit
