#include "entry_file.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "atomic_file.hpp"
#include "file_descriptor.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

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
FileOutcome read_once(const fs::path& path, WholeFile& whole) {
  // O_NONBLOCK changes nothing for regular files and keeps a FIFO from blocking the open.
  const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const FileDescriptor file(retry_interrupted([&] { return ::open(path.c_str(), flags); }));
  if (file.get() < 0) {
    return failed("open");
  }
  if (::fstat(file.get(), &whole.status) != 0) {
    return failed("fstat");
  }
  if (!S_ISREG(whole.status.st_mode)) {
    return {.error_number = EINVAL, .step = "read what is not a regular file"};
  }
  if (static_cast<std::uint64_t>(whole.status.st_size) > max_entry_file_bytes) {
    return {.error_number = EFBIG, .step = "read"};
  }
  whole.bytes.resize(static_cast<std::size_t>(whole.status.st_size));
  return read_into(file.get(), whole.bytes);
}

bool may_pass(int error_number) {
  return error_number == ESTALE || error_number == EINTR || error_number == EAGAIN ||
         error_number == EBUSY;
}

// The mode is set again after mkdir, for that obeys the umask. What refuses it refuses more later.
bool make_directory(const fs::path& directory, mode_t mode) {
  if (::mkdir(directory.c_str(), mode) == 0) {
    ::chmod(directory.c_str(), mode);
    return true;
  }
  return errno == EEXIST;
}

}  // namespace

FileOutcome make_directories(const fs::path& directory, FileModes modes) {
  if (make_directory(directory, modes.directory)) {
    return {};
  }
  if (errno != ENOENT || !directory.has_parent_path()) {
    return failed("make the directory");
  }
  if (const FileOutcome parent = make_directories(directory.parent_path(), modes); !parent.ok()) {
    return parent;
  }
  return make_directory(directory, modes.directory) ? FileOutcome{} : failed("make the directory");
}

FileOutcome read_whole_file(const fs::path& path, WholeFile& file) {
  const FileOutcome outcome = read_once(path, file);
  return may_pass(outcome.error_number) ? read_once(path, file) : outcome;
}

FileOutcome publish_whole_file(const fs::path& path, std::string_view bytes, FileModes modes) {
  if (bytes.size() > max_entry_file_bytes) {
    return {.error_number = EFBIG, .step = "write"};
  }
  FileOutcome outcome = make_directories(path.parent_path(), modes);
  AtomicFile file;
  if (outcome.ok()) {
    outcome = file.open(path, modes.file);
  }
  if (outcome.ok()) {
    outcome = file.append(bytes);
  }
  return outcome.ok() ? file.publish() : outcome;
}

}  // namespace attnjit
