#include "nvcc.hpp"

#include <sys/wait.h>

#include <cstdlib>
#include <regex>

#include "../cache/scratch_directory.hpp"

namespace attnjit::test {

namespace fs = std::filesystem;

std::string find_nvcc() {
  std::vector<std::string> candidates;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(variable)) {
      candidates.push_back((fs::path(root) / "bin/nvcc").string());
    }
  }
  candidates.emplace_back("/usr/local/cuda/bin/nvcc");
  candidates.emplace_back("nvcc");
  // A wrapper on the path can outlive its toolkit: only one that runs counts.
  for (const std::string& candidate : candidates) {
    if (std::system(("\"" + candidate + "\" --version > /dev/null 2>&1").c_str()) == 0) {
      return candidate;
    }
  }
  return "";
}

std::string compile_with_nvcc(const std::string& nvcc, const fs::path& source,
                              const std::vector<fs::path>& include_folders,
                              const std::string& arch) {
  const ScratchDirectory scratch;
  const fs::path log = scratch.path() / "log";
  std::string command = "\"" + nvcc + "\" -std=c++17 -cubin -arch=" + arch + " -Xptxas -v";
  for (const fs::path& folder : include_folders) {
    command += " -I \"" + folder.string() + "\"";
  }
  command += " -o \"" + (scratch.path() / "cubin").string() + "\" \"" + source.string() +
             "\" > \"" + log.string() + "\" 2>&1";
  const int status = std::system(command.c_str());
  const bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return (succeeded ? "" : "failed: ") + read_text(log);
}

std::vector<std::string> nonzero_local_memory(const std::string& log) {
  static const std::regex remark("([0-9]+) bytes (stack frame|spill stores|spill loads)");
  std::vector<std::string> found;
  for (std::sregex_iterator match(log.begin(), log.end(), remark), end; match != end; ++match) {
    if ((*match)[1] != "0") {
      found.push_back(match->str());
    }
  }
  return found;
}

}  // namespace attnjit::test
