// Runs another program and reads what it prints. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attnjit {

struct ProgramOutput {
  int exit_code = -1;  // 128 + signal if one ended it
  std::string text;    // standard output and standard error, as they came
};

// Runs `program` with `arguments`, without a shell, standard input empty, and waits for its end.
// Throws std::runtime_error if it cannot be started.
ProgramOutput run_program(const std::filesystem::path& program,
                          const std::vector<std::string>& arguments);

// The first executable file called `name` in the directories of PATH; empty if there is none.
std::filesystem::path find_on_path(const std::string& name);

}  // namespace attnjit
