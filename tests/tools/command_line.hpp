// Runs the built attnjit binary as a user would. Each call uses files of its own, so tests may run
// side by side.
#pragma once

#include <filesystem>
#include <string>

namespace attnjit {

struct CommandOutput {
  int exit_code = -1;  // -1 if it ended by a signal
  std::string out;     // standard output
  std::string err;     // standard error
};

// A directory of the test process, removed when the object goes.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

// Runs `attnjit <arguments>`; the arguments go through the shell. With `out_path` standard output
// goes there and is not read back.
CommandOutput run_attnjit(const std::string& arguments, const std::string& out_path = "");

}  // namespace attnjit
