// Reads what matters of a cubin, an ELF file, without trusting a byte of it: compiled and cached
// cubins are checked here before anything else sees them. Pure, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

struct CubinContents {
  int architecture = 0;              // e.g. 90; the suffix of sm_90a is not recorded in it
  std::vector<std::string> kernels;  // names of the entry points that have code
};

// nullopt, and the reason in *problem, for anything but a whole 64-bit CUDA ELF file.
std::optional<CubinContents> inspect_cubin(std::string_view cubin, std::string* problem);

// Why `cubin` cannot be the kernel `entry` compiled for `arch` ("sm_90a"); nullopt if it can.
std::optional<std::string> cubin_problem(std::string_view cubin, std::string_view arch,
                                         std::string_view entry);

}  // namespace attnjit
