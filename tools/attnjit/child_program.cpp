#include "child_program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace attnjit {
namespace {

namespace fs = std::filesystem;

// Read end and write end, closed when they go.
struct Pipe {
  int ends[2] = {-1, -1};

  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw std::runtime_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    }
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_end(int end) {
    if (ends[end] >= 0) {
      close(ends[end]);
      ends[end] = -1;
    }
  }
};

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t count = read(descriptor, block.data(), block.size());
    if (count > 0) {
      text.append(block.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      return text;
    }
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ProgramOutput run_program(const fs::path& program, const std::vector<std::string>& arguments) {
  std::string name = program.string();
  std::vector<std::string> words = arguments;
  std::vector<char*> pointers = {name.data()};
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);

  Pipe output;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDERR_FILENO);
  pid_t child = -1;
  const int error = posix_spawn(&child, name.c_str(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw std::runtime_error(fmt::format("cannot run {}: {}", name, std::strerror(error)));
  }
  output.close_end(1);
  ProgramOutput result;
  result.text = read_all(output.ends[0]);
  result.exit_code = wait_for(child);
  return result;
}

fs::path find_on_path(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    fs::path candidate = fs::path(rest.substr(0, end)) / name;
    std::error_code ignored;
    if (end > 0 && fs::is_regular_file(candidate, ignored) &&
        access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

}  // namespace attnjit
