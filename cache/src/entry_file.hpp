// Whole files in and out of a cache directory: the only code of cache/ that makes system calls on
// entries. Private; thread-safe, also between processes; keeps no descriptor open.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace attnjit {

// Larger files are neither written nor read: whatever lies in the directory, a lookup allocates no
// more than this.
constexpr std::size_t max_entry_file_bytes = std::size_t{256} << 20;

// How a file operation ended. error_number is an errno value, 0 on success; step says what was
// being done.
struct FileOutcome {
  int error_number = 0;
  std::string_view step;

  bool ok() const { return error_number == 0; }
  std::string message() const;  // "cannot <step>: <meaning of error_number>"
};

// Makes `directory` and its parents, mode 0700. That another process made it meanwhile is success;
// that it is no directory shows in the next call that uses it.
FileOutcome make_directories(const std::filesystem::path& directory);

// Reads all of a regular file into `bytes`; does not follow a symbolic link in its last component.
// Tries once more where the error is one of those that pass (ESTALE, EINTR, EAGAIN, EBUSY).
FileOutcome read_whole_file(const std::filesystem::path& path, std::string& bytes);

// Makes `bytes` the content of `path` in one step: a reader sees the old file, or none, or all of
// the new one, also after a crash. Missing directories are made with mode 0700, the file has mode
// 0600. A failure leaves nothing new but directories.
FileOutcome publish_whole_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace attnjit
