#include "disassembler.hpp"

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <unistd.h>

#include "attnjit/kernel_compiler.hpp"
#include "child_program.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

constexpr const char* names[] = {"nvdisasm", "cuobjdump"};

// A file of a temporary name that is removed when the object goes.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view bytes) {
    std::string name = (fs::temp_directory_path() / "attnjit-cubin-XXXXXX").string();
    const int descriptor = mkstemp(name.data());
    if (descriptor < 0) {
      throw std::runtime_error(fmt::format("cannot make a file in {}; fix: set TMPDIR",
                                           fs::temp_directory_path().string()));
    }
    close(descriptor);
    path_ = name;
    std::ofstream file(path_, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) {
      unlink(path_.c_str());
      throw std::runtime_error(fmt::format("cannot write {}; fix: set TMPDIR", path_.string()));
    }
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::vector<fs::path> tool_directories(const fs::path& nvrtc_library) {
  std::vector<fs::path> directories;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(variable);
    if (root != nullptr && *root != '\0') {
      directories.push_back(fs::path(root) / "bin");
    }
  }
  // <toolkit>/lib64, <toolkit>/targets/<system>/lib, <site-packages>/nvidia/cu13/lib.
  std::error_code ignored;
  fs::path folder = fs::canonical(nvrtc_library, ignored).parent_path();
  for (int level = 0; level < 3 && folder.has_relative_path(); ++level) {
    folder = folder.parent_path();
    directories.push_back(folder / "bin");
  }
  directories.emplace_back("/usr/local/cuda/bin");
  return directories;
}

}  // namespace

fs::path find_disassembler(const fs::path& nvrtc_library) {
  const std::vector<fs::path> directories = tool_directories(nvrtc_library);
  for (const char* name : names) {
    if (fs::path found = find_on_path(name); !found.empty()) {
      return found;
    }
    for (const fs::path& directory : directories) {
      if (access((directory / name).c_str(), X_OK) == 0) {
        return directory / name;
      }
    }
  }
  return {};
}

std::string disassemble(const fs::path& disassembler, std::string_view cubin) {
  const TemporaryFile file(cubin);
  const bool is_nvdisasm = disassembler.filename() == names[0];
  const ProgramOutput output =
      run_program(disassembler, {is_nvdisasm ? "--print-code" : "--dump-sass", file.path()});
  if (output.exit_code != 0) {
    throw ToolchainError(
        fmt::format("{} failed ({}): {}", disassembler.string(), output.exit_code, output.text));
  }
  return output.text;
}

void require_disassembler(const fs::path& disassembler) {
  if (disassembler.empty()) {
    throw ToolchainError(
        "SASS needs nvdisasm or cuobjdump, and neither is on PATH, in the bin directory of "
        "CUDA_HOME or CUDA_PATH, beside the toolkit of libnvrtc, or in /usr/local/cuda/bin; fix: "
        "install the CUDA toolkit's nvdisasm (Python package nvidia-cuda-nvdisasm, Debian package "
        "cuda-nvdisasm) and put it on PATH");
  }
}

}  // namespace attnjit
