// Cubin -> SASS, through the toolkit's nvdisasm or cuobjdump where there is one. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace attnjit {

// nvdisasm, else cuobjdump: on PATH, in the bin directory of CUDA_HOME or CUDA_PATH, of the toolkit
// or Python package that `nvrtc_library` lies in (empty: none), or of /usr/local/cuda. Empty if
// there is none.
std::filesystem::path find_disassembler(const std::filesystem::path& nvrtc_library);

// What `disassembler` prints of the code of `cubin`. Throws ToolchainError with its words if it
// fails, std::runtime_error if it cannot be run.
std::string disassemble(const std::filesystem::path& disassembler, std::string_view cubin);

// Of an empty path, ToolchainError saying where one was looked for and what to do.
void require_disassembler(const std::filesystem::path& disassembler);

}  // namespace attnjit
