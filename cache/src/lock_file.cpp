#include "lock_file.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "entry_file.hpp"
#include "file_descriptor.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

KeyLock refused(const fs::path& path, const FileOutcome& outcome,
                LockRefusal refusal = LockRefusal::impossible) {
  return {refusal, path.string() + ": " + outcome.message()};
}

// O_NONBLOCK keeps a FIFO that somebody put there from blocking the open.
constexpr int open_flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

int open_for_locking(const fs::path& path, mode_t mode) {
  const int made =
      retry_interrupted([&] { return ::open(path.c_str(), open_flags | O_CREAT | O_EXCL, mode); });
  if (made >= 0) {
    ::fchmod(made, mode);  // whatever the umask; without it others of a group go on without a lock
    return made;
  }
  return errno != EEXIST ? made
                         : retry_interrupted([&] { return ::open(path.c_str(), open_flags); });
}

// Polls: a blocking flock could be neither bounded nor reported. Short waits first, most compiles
// take less than a second.
KeyLock wait_for_lock(FileDescriptor file, const fs::path& path, const LockPatience& patience) {
  constexpr std::chrono::milliseconds shortest{1};
  constexpr std::chrono::milliseconds longest{50};
  const auto start = Clock::now();
  bool is_noticed = false;
  for (auto pause = shortest; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0;
       pause = std::min(pause * 2, longest)) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return refused(path, failed("lock"));
    }
    const auto waited = Clock::now() - start;
    if (waited >= patience.limit) {
      return refused(path, {.error_number = ETIMEDOUT, .step = "lock"}, LockRefusal::busy);
    }
    if (!is_noticed && waited >= patience.notice && patience.on_wait) {
      is_noticed = true;
      patience.on_wait(path.string());
    }
    std::this_thread::sleep_for(pause);
  }
  return KeyLock(file.release());
}

}  // namespace

KeyLock::KeyLock(KeyLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      refusal_(other.refusal_),
      problem_(std::move(other.problem_)) {}

KeyLock::~KeyLock() {
  const FileDescriptor closed_now(descriptor_);
}

KeyLock lock_file(const fs::path& path, FileModes modes, const LockPatience& patience) {
  if (const FileOutcome made = make_directories(path.parent_path(), modes); !made.ok()) {
    return refused(path, made);
  }
  FileDescriptor file(open_for_locking(path, modes.file));
  if (file.get() < 0) {
    return refused(path, failed("open"));
  }
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) {
    return refused(path, failed("fstat"));
  }
  if (!S_ISREG(status.st_mode)) {
    return refused(path, {.error_number = EINVAL, .step = "lock what is not a regular file"});
  }
  return wait_for_lock(std::move(file), path, patience);
}

}  // namespace attnjit
