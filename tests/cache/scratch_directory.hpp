// What the cache tests share: a directory of their own, child processes, environment variables.
// Not thread-safe: fork only before the test starts threads.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace attnjit::test {

// An empty directory below the system's temporary directory, that every user can read, removed with
// all it holds.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Sets a variable (nullopt: removes it) for the life of the object.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, std::optional<std::string> value);
  ~ScopedVariable();
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

// Forks; the child leaves with what `body` returns, or 99 if it throws.
pid_t start_child(const std::function<int()>& body);

// The exit status of the child, or 1000 + the signal that ended it.
int wait_for_child(pid_t child);

int run_in_child(const std::function<int()>& body);

// In a child: gives up root, if it is root, for the given user. Where the system forbids that, as
// in a container without that user id, the child leaves with not_permitted.
constexpr int not_permitted = 77;
void become_user(uid_t user);

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, std::string_view bytes);

// Temporary files of unfinished publishing anywhere below `directory`.
int count_temporary_files(const std::filesystem::path& directory);

}  // namespace attnjit::test
