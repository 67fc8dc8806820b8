// Reads the assembler's remarks in a compile log (--ptxas-options=-v). Pure, thread-safe.
#pragma once

#include "attnjit/kernel_compiler.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

// What the log says about the kernel `entry`; zeros where it says nothing.
KernelResources parse_resources(std::string_view log, std::string_view entry);

// The lines with a C75xx code: wgmma instructions were serialised, which costs most of their speed.
std::vector<std::string> serialization_notes(std::string_view log);

}  // namespace attnjit
