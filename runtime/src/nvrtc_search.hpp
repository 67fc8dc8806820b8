// Where libnvrtc may be on this machine, in the order it is looked for. Reads the environment and
// the file system; loads nothing. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attnjit {

struct NvrtcCandidate {
  std::string origin;           // who named it, e.g. "$CUDA_HOME"
  std::filesystem::path where;  // the file; a bare soname = ask the loader; what was looked at
  std::string problem;          // why it cannot be tried; empty = try it
};

// The file that holds this code: a program, or libattnjit.so. Empty if it cannot be told.
std::filesystem::path attnjit_module();

// `option` if not empty, else $ATTNJIT_NVRTC if set, decides alone; otherwise the loader's path,
// toolkits, the Python packages that `module` was installed among, and others follow one another.
std::vector<NvrtcCandidate> nvrtc_candidates(
    const std::filesystem::path& option, const std::filesystem::path& module = attnjit_module());

}  // namespace attnjit
