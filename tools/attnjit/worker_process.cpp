#include "worker_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

namespace attnjit {
namespace {

constexpr off_t shown_errors = 2000;  // bytes

[[noreturn]] void fail(int error_number, const char* what) {
  throw std::system_error(error_number, std::generic_category(), what);
}

// Where the worker's standard streams go, and the state that its signals start in.
class SpawnAttributes {
 public:
  SpawnAttributes(int socket, int errors) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, socket, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, socket, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnAttributes() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  // The new process; throws std::system_error.
  pid_t spawn(const std::vector<std::string>& arguments) const {
    std::vector<std::string> words = {"attnjit"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) {
      pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    pid_t process = -1;
    const int error =
        posix_spawn(&process, "/proc/self/exe", &actions_, &attributes_, pointers.data(), environ);
    if (error != 0) {
      fail(error, "cannot start a worker process (/proc/self/exe)");
    }
    return process;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// The last bytes of a file, without a line's end at its end.
std::string tail_of(int file) {
  const off_t size = lseek(file, 0, SEEK_END);
  const off_t begin = std::max<off_t>(0, size - shown_errors);
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, size - begin)), '\0');
  const ssize_t got = pread(file, text.data(), text.size(), begin);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

std::string describe_end(int status) {
  if (WIFEXITED(status)) {
    return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  }
  const int signal = WTERMSIG(status);
  return fmt::format("ended by signal {} ({}){}", signal, strsignal(signal),
                     signal == SIGKILL ? ", as the system sends it where memory ends" : "");
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& arguments) {
  std::array<int, 2> sockets{};
  errors_ = memfd_create("attnjit-worker-errors", MFD_CLOEXEC);
  if (errors_ < 0) {
    fail(errno, "cannot make a file for a worker's errors");
  }
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    const int error = errno;
    close(errors_);
    fail(error, "cannot make a socket for a worker");
  }
  socket_ = sockets[0];
  try {
    process_ = SpawnAttributes(sockets[1], errors_).spawn(arguments);
  } catch (...) {
    close(sockets[1]);
    close(socket_);
    close(errors_);
    throw;
  }
  close(sockets[1]);
}

WorkerProcess::~WorkerProcess() {
  end();
  close(socket_);
  close(errors_);
}

void WorkerProcess::send(std::string_view line) const {
  while (!line.empty()) {
    const ssize_t sent = ::send(socket_, line.data(), line.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) {
      return;
    }
    line.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(0, sent)));
  }
}

std::optional<std::vector<std::string>> WorkerProcess::read_lines() {
  std::array<char, 4096> bytes{};
  const ssize_t got = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  const bool has_ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (has_ended) {
    return std::nullopt;
  }
  unread_.append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  std::vector<std::string> lines;
  for (std::size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    lines.push_back(unread_.substr(0, end));
    unread_.erase(0, end + 1);
  }
  return lines;
}

std::string WorkerProcess::end() {
  if (process_ < 0) {
    return "";
  }
  int status = 0;
  // One that has ended by itself is not touched by the signal: its status stays its own.
  kill(process_, SIGKILL);
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  const std::string errors = tail_of(errors_);
  return describe_end(status) + (errors.empty() ? "" : "; its last words:\n" + errors);
}

}  // namespace attnjit
