// The options of every compile, and the targets an NVRTC knows. Pure functions, thread-safe.
#pragma once

#include "nvrtc_library.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

// The version that a toolchain identity begins with; nullopt if it does not.
std::optional<NvrtcVersion> version_of_identity(std::string_view toolchain_identity);

// Asks the assembler for registers and spills in the log.
inline constexpr const char* verbose_assembler = "--ptxas-options=-v";

// Options for a target such as "sm_90a", in order; they are part of the key. For "compute_90a" the
// result is PTX.
std::vector<std::string> nvrtc_options(std::string_view arch, NvrtcVersion version);

// The option made from the key itself, and so no part of it; nullopt where NVRTC has none (before
// 12.9). It names internal symbols, which are otherwise named after the process id.
std::optional<std::string> seed_option(std::string_view key_digest, NvrtcVersion version);

// The number of "sm_90a": 90; nullopt if the text has another form.
std::optional<int> architecture_number(std::string_view arch);

// Why this NVRTC cannot compile for `arch`, and which one can; nullopt if it can.
std::optional<std::string> target_problem(std::string_view arch, const NvrtcLibrary& nvrtc);

}  // namespace attnjit
