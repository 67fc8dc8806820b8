#include "entry_file.hpp"

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_descriptor.hpp"

namespace attnjit {
namespace {

FileOutcome failed(std::string_view step) {
  return {.error_number = errno, .step = step};
}

// A temporary name that disappears unless it was renamed.
class TemporaryName {
 public:
  explicit TemporaryName(std::string name) : name_(std::move(name)) {}
  ~TemporaryName() {
    if (!name_.empty()) {
      ::unlink(name_.c_str());
    }
  }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  bool rename_to(const std::filesystem::path& path) {
    if (::rename(name_.c_str(), path.c_str()) != 0) {
      return false;
    }
    name_.clear();
    return true;
  }

 private:
  std::string name_;
};

FileOutcome read_into(int descriptor, std::string& bytes) {
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = retry_interrupted(
        [&] { return ::read(descriptor, bytes.data() + filled, bytes.size() - filled); });
    if (count < 0) {
      return failed("read");
    }
    if (count == 0) {
      break;  // cut off since fstat: the checksum will tell
    }
    filled += static_cast<std::size_t>(count);
  }
  bytes.resize(filled);
  return {};
}

// read(), not mmap: a mapped file that another host truncates kills the process with SIGBUS.
FileOutcome read_once(const std::filesystem::path& path, std::string& bytes) {
  // O_NONBLOCK changes nothing for regular files and keeps a FIFO from blocking the open.
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const FileDescriptor file(retry_interrupted([&] { return ::open(path.c_str(), flags); }));
  if (file.get() < 0) {
    return failed("open");
  }
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) {
    return failed("fstat");
  }
  if (!S_ISREG(status.st_mode)) {
    return {.error_number = EINVAL, .step = "read what is not a regular file"};
  }
  if (static_cast<std::uint64_t>(status.st_size) > max_entry_file_bytes) {
    return {.error_number = EFBIG, .step = "read"};
  }
  bytes.resize(static_cast<std::size_t>(status.st_size));
  return read_into(file.get(), bytes);
}

bool may_pass(int error_number) {
  return error_number == ESTALE || error_number == EINTR || error_number == EAGAIN ||
         error_number == EBUSY;
}

FileOutcome write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        retry_interrupted([&] { return ::write(descriptor, bytes.data(), bytes.size()); });
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

// Until the directory is on the disk a power cut can undo the rename. File systems that cannot
// sync a directory say EINVAL or ENOTSUP: they have nothing better to offer.
FileOutcome sync_directory(const std::filesystem::path& directory) {
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

// A directory in an entry's place would fail every rename for ever. It is not ours to delete: it is
// kept beside the entry, under a name that no entry has.
bool move_directory_aside(const std::filesystem::path& path, std::string_view unique) {
  const std::string aside = path.string() + ".bad-" + std::string(unique);
  return std::filesystem::is_directory(std::filesystem::symlink_status(path)) &&
         ::rename(path.c_str(), aside.c_str()) == 0;
}

}  // namespace

std::string FileOutcome::message() const {
  return "cannot " + std::string(step) + ": " +
         std::error_code(error_number, std::generic_category()).message();
}

FileOutcome make_directories(const std::filesystem::path& directory) {
  constexpr mode_t owner_only = 0700;
  if (::mkdir(directory.c_str(), owner_only) == 0 || errno == EEXIST) {
    return {};
  }
  if (errno != ENOENT || !directory.has_parent_path()) {
    return failed("make the directory");
  }
  if (const FileOutcome parent = make_directories(directory.parent_path()); !parent.ok()) {
    return parent;
  }
  if (::mkdir(directory.c_str(), owner_only) != 0 && errno != EEXIST) {
    return failed("make the directory");
  }
  return {};
}

FileOutcome read_whole_file(const std::filesystem::path& path, std::string& bytes) {
  const FileOutcome outcome = read_once(path, bytes);
  return may_pass(outcome.error_number) ? read_once(path, bytes) : outcome;
}

FileOutcome publish_whole_file(const std::filesystem::path& path, std::string_view bytes) {
  if (bytes.size() > max_entry_file_bytes) {
    return {.error_number = EFBIG, .step = "write"};
  }
  const std::filesystem::path directory = path.parent_path();
  if (const FileOutcome made = make_directories(directory); !made.ok()) {
    return made;
  }
  // Same directory, hence same file system: the rename is atomic.
  std::string name = (directory / ".tmp-XXXXXX").string();
  FileDescriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) {
    return failed("make a temporary file");
  }
  const std::string unique = name.substr(name.size() - 6);
  TemporaryName temporary(std::move(name));
  if (::fchmod(file.get(), 0600) != 0) {  // whatever the umask
    return failed("set the mode");
  }
  if (const FileOutcome written = write_all(file.get(), bytes); !written.ok()) {
    return written;
  }
  if (retry_interrupted([&] { return ::fsync(file.get()); }) != 0) {
    return failed("sync");
  }
  if (!file.close_now()) {
    return failed("close");
  }
  if (!temporary.rename_to(path)) {
    const FileOutcome refused = failed("rename");
    if (!move_directory_aside(path, unique) || !temporary.rename_to(path)) {
      return refused;
    }
  }
  return sync_directory(directory);
}

}  // namespace attnjit
