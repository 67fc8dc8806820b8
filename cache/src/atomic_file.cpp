#include "atomic_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace attnjit {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t unique_characters = 6;  // mkostemp's

// Until the directory is on the disk a power cut can undo the rename. File systems that cannot
// sync a directory say EINVAL or ENOTSUP: they have nothing better to offer.
FileOutcome sync_directory(const fs::path& directory) {
  const int flags = O_RDONLY | O_CLOEXEC | O_DIRECTORY;
  const FileDescriptor opened(retry_interrupted([&] { return ::open(directory.c_str(), flags); }));
  if (opened.get() < 0) {
    return failed("open the directory");
  }
  if (retry_interrupted([&] { return ::fsync(opened.get()); }) != 0 && errno != EINVAL &&
      errno != ENOTSUP) {
    return failed("sync the directory");
  }
  return {};
}

// "a/b" -> "a", "b" -> ".".
fs::path directory_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// A directory in an entry's place would fail every rename for ever. It is not ours to delete: it is
// kept beside the entry, under a name that no entry has.
bool move_directory_aside(const fs::path& path, std::string_view unique) {
  const std::string aside = path.string() + ".bad-" + std::string(unique);
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path, error)) &&
         ::rename(path.c_str(), aside.c_str()) == 0;
}

}  // namespace

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

FileOutcome AtomicFile::open(const fs::path& path, mode_t mode) {
  path_ = path;
  // Same directory, hence same file system: the rename is atomic.
  std::string name = (directory_of(path) / (std::string(temporary_prefix) + "XXXXXX")).string();
  file_ = FileDescriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (file_.get() < 0) {
    return failed("make a temporary file");
  }
  temporary_ = std::move(name);
  if (::fchmod(file_.get(), mode) != 0) {
    return failed("set the mode");
  }
  return {};
}

FileOutcome AtomicFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        retry_interrupted([&] { return ::write(file_.get(), bytes.data(), bytes.size()); });
    if (count < 0) {
      return failed("write");
    }
    if (count == 0) {
      return {.error_number = EIO, .step = "write"};
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

bool AtomicFile::rename_to_path() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return false;
  }
  temporary_.clear();
  return true;
}

FileOutcome AtomicFile::publish() {
  if (retry_interrupted([&] { return ::fsync(file_.get()); }) != 0) {
    return failed("sync");
  }
  if (!file_.close_now()) {
    return failed("close");
  }
  if (!rename_to_path()) {
    const FileOutcome refused = failed("rename");
    const std::string unique = temporary_.substr(temporary_.size() - unique_characters);
    if (!move_directory_aside(path_, unique) || !rename_to_path()) {
      return refused;
    }
  }
  return sync_directory(directory_of(path_));
}

}  // namespace attnjit
