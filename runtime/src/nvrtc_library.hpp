// libnvrtc as opened: its entry points, version and identity. Immutable after open_nvrtc;
// thread-safe.
#pragma once

#include "dynamic_library.hpp"

#include <nvrtc.h>

#include <compare>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

struct NvrtcVersion {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const NvrtcVersion&, const NvrtcVersion&) = default;
};
std::string to_string(NvrtcVersion version);

struct NvrtcLibrary {
  explicit NvrtcLibrary(DynamicLibrary opened) : library(std::move(opened)) {}

  DynamicLibrary library;
  std::filesystem::path builtins_path;
  NvrtcVersion version;
  std::string identity;            // see KernelCompiler::toolchain_identity
  std::vector<int> architectures;  // e.g. 75, 80, …

  decltype(&nvrtcVersion) get_version = nullptr;
  decltype(&nvrtcGetErrorString) get_error_string = nullptr;
  decltype(&nvrtcGetNumSupportedArchs) get_num_supported_archs = nullptr;
  decltype(&nvrtcGetSupportedArchs) get_supported_archs = nullptr;
  decltype(&nvrtcCreateProgram) create_program = nullptr;
  decltype(&nvrtcDestroyProgram) destroy_program = nullptr;
  decltype(&nvrtcCompileProgram) compile_program = nullptr;
  decltype(&nvrtcGetProgramLogSize) get_program_log_size = nullptr;
  decltype(&nvrtcGetProgramLog) get_program_log = nullptr;
  decltype(&nvrtcGetCUBINSize) get_cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) get_cubin = nullptr;
  decltype(&nvrtcGetPTXSize) get_ptx_size = nullptr;
  decltype(&nvrtcGetPTX) get_ptx = nullptr;
};

// Opens the first usable candidate of nvrtc_candidates(option), its builtins first. Throws
// ToolchainError listing every candidate with its problem, and what to do.
NvrtcLibrary open_nvrtc(const std::filesystem::path& option);

}  // namespace attnjit
