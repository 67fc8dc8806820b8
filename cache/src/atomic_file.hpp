// A file that is written beside its name and appears under it whole, or not at all. Private; each
// object belongs to one thread, files may be published by many at once.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "file_descriptor.hpp"
#include "file_outcome.hpp"

namespace attnjit {

// Names that begin so are being written, or were left by a killed writer.
constexpr std::string_view temporary_prefix = ".tmp-";

class AtomicFile {
 public:
  AtomicFile() : file_(-1) {}
  ~AtomicFile();  // removes what was not published
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // A temporary file in the directory of `path`, which must be there; `mode` whatever the umask.
  FileOutcome open(const std::filesystem::path& path, mode_t mode);

  FileOutcome append(std::string_view bytes);

  // Makes all that was appended the content of `path` in one step: a reader sees the old file, or
  // none, or all of the new one, also after a crash. A directory in its place is kept aside.
  FileOutcome publish();

 private:
  bool rename_to_path();

  std::filesystem::path path_;
  std::string temporary_;  // its name while it is there
  FileDescriptor file_;
};

}  // namespace attnjit
