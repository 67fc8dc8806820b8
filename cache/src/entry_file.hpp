// Whole files in and out of a cache directory. Private; thread-safe, also between processes; keeps
// no descriptor open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <sys/stat.h>

#include "file_modes.hpp"
#include "file_outcome.hpp"

namespace attnjit {

// Larger files are neither written nor read: whatever lies in the directory, a lookup allocates no
// more than this.
constexpr std::size_t max_entry_file_bytes = std::size_t{256} << 20;

// A file's bytes, and what the file was when they were read.
struct WholeFile {
  std::string bytes;
  struct stat status = {};
};

// Makes `directory` and its parents, in `modes`. That another process made it meanwhile is success;
// that it is no directory shows in the next call that uses it.
FileOutcome make_directories(const std::filesystem::path& directory, FileModes modes);

// Reads all of a regular file; does not follow a symbolic link in its last component. Tries once
// more where the error is one of those that pass (ESTALE, EINTR, EAGAIN, EBUSY).
FileOutcome read_whole_file(const std::filesystem::path& path, WholeFile& file);

// Makes `bytes` the content of `path` in one step (see AtomicFile). Missing directories are made. A
// failure leaves nothing new but directories.
FileOutcome publish_whole_file(const std::filesystem::path& path, std::string_view bytes,
                               FileModes modes);

}  // namespace attnjit
