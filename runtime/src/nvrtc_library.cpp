#include "nvrtc_library.hpp"

#include "attnjit/kernel_compiler.hpp"
#include "nvrtc_search.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace attnjit {
namespace {

namespace fs = std::filesystem;

constexpr NvrtcVersion oldest_supported = {12, 4};

constexpr const char* advice =
    "Install NVRTC 12.4 or newer (a CUDA toolkit, or the Python package nvidia-cuda-nvrtc), or set "
    "ATTNJIT_NVRTC to libnvrtc.so.13 or .12, or to the directory that holds it and its builtins.";

void bind_entry_points(NvrtcLibrary& nvrtc) {
  const DynamicLibrary& library = nvrtc.library;
  library.bind(nvrtc.get_version, "nvrtcVersion");
  library.bind(nvrtc.get_error_string, "nvrtcGetErrorString");
  library.bind(nvrtc.get_num_supported_archs, "nvrtcGetNumSupportedArchs");
  library.bind(nvrtc.get_supported_archs, "nvrtcGetSupportedArchs");
  library.bind(nvrtc.create_program, "nvrtcCreateProgram");
  library.bind(nvrtc.destroy_program, "nvrtcDestroyProgram");
  library.bind(nvrtc.compile_program, "nvrtcCompileProgram");
  library.bind(nvrtc.get_program_log_size, "nvrtcGetProgramLogSize");
  library.bind(nvrtc.get_program_log, "nvrtcGetProgramLog");
  library.bind(nvrtc.get_cubin_size, "nvrtcGetCUBINSize");
  library.bind(nvrtc.get_cubin, "nvrtcGetCUBIN");
  library.bind(nvrtc.get_ptx_size, "nvrtcGetPTXSize");
  library.bind(nvrtc.get_ptx, "nvrtcGetPTX");
}

void require_success(const NvrtcLibrary& nvrtc, nvrtcResult result, const char* call) {
  if (result != NVRTC_SUCCESS) {
    throw LibraryError(fmt::format("{} failed: {}", call, nvrtc.get_error_string(result)));
  }
}

void read_version(NvrtcLibrary& nvrtc) {
  require_success(nvrtc, nvrtc.get_version(&nvrtc.version.major, &nvrtc.version.minor),
                  "nvrtcVersion");
  if (nvrtc.version < oldest_supported) {
    throw LibraryError(fmt::format("is version {}; {} or newer is needed", to_string(nvrtc.version),
                                   to_string(oldest_supported)));
  }
}

void read_architectures(NvrtcLibrary& nvrtc) {
  int count = 0;
  require_success(nvrtc, nvrtc.get_num_supported_archs(&count), "nvrtcGetNumSupportedArchs");
  nvrtc.architectures.resize(static_cast<std::size_t>(count));
  require_success(nvrtc, nvrtc.get_supported_archs(nvrtc.architectures.data()),
                  "nvrtcGetSupportedArchs");
}

// libnvrtc opens its builtins by bare name and has no RUNPATH, so a copy beside it is found only if
// it is in the process already. What counts for the identity is the image NVRTC will get, which
// is another one if the host program loaded its own builtins before.
DynamicLibrary open_builtins(const NvrtcLibrary& nvrtc) {
  const std::string name = "libnvrtc-builtins.so." + to_string(nvrtc.version);
  const fs::path directory = fs::canonical(nvrtc.library.path()).parent_path();
  if (!fs::exists(directory / name)) {
    throw LibraryError(
        fmt::format("{} is missing beside it, in {}; copy it there from the same NVRTC release",
                    name, directory.string()));
  }
  const DynamicLibrary preloaded(directory / name, DynamicLibrary::Symbols::global);
  return DynamicLibrary(name);
}

void read_identity(NvrtcLibrary& nvrtc) {
  const DynamicLibrary builtins = open_builtins(nvrtc);
  nvrtc.builtins_path = builtins.path();
  const char* appended = std::getenv("NVRTC_APPEND_FLAGS");
  nvrtc.identity = fmt::format("nvrtc {} library {} builtins {} appended_flags [{}]",
                               to_string(nvrtc.version), nvrtc.library.build_id(),
                               builtins.build_id(), appended != nullptr ? appended : "");
}

NvrtcLibrary open_candidate(const fs::path& path) {
  NvrtcLibrary nvrtc{DynamicLibrary(path)};
  bind_entry_points(nvrtc);
  read_version(nvrtc);
  read_architectures(nvrtc);
  read_identity(nvrtc);
  return nvrtc;
}

}  // namespace

std::string to_string(NvrtcVersion version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

NvrtcLibrary open_nvrtc(const fs::path& option) {
  std::string tried;
  for (const NvrtcCandidate& candidate : nvrtc_candidates(option)) {
    std::string problem = candidate.problem;
    if (problem.empty()) {
      try {
        return open_candidate(candidate.where);
      } catch (const LibraryError& error) {
        problem = error.what();
      }
    }
    tried += fmt::format("\n  {} {}: {}", candidate.origin, candidate.where.string(), problem);
  }
  throw ToolchainError(fmt::format("no usable NVRTC. Tried:{}\n{}", tried, advice));
}

}  // namespace attnjit
