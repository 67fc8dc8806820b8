// An open file that closes itself, and system calls that a signal interrupts. Private.
#pragma once

#include <cerrno>
#include <utility>

#include <unistd.h>

namespace attnjit {

// A signal may interrupt a call on a network file system again and again: the bound keeps a
// process with a fast profiling timer from waiting for ever.
constexpr int max_interruptions = 64;

template <typename Call>
auto retry_interrupted(Call call) {
  auto result = call();
  for (int i = 0; result < 0 && errno == EINTR && i < max_interruptions; ++i) {
    result = call();
  }
  return result;
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() { close_now(); }
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    close_now();
    descriptor_ = other.release();
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

  // False, errno set, where the system reports a late write error. Linux has released the
  // descriptor also after EINTR: calling close again could close another thread's file.
  bool close_now() {
    const int descriptor = std::exchange(descriptor_, -1);
    return descriptor < 0 || ::close(descriptor) == 0 || errno == EINTR;
  }

 private:
  int descriptor_;
};

}  // namespace attnjit
