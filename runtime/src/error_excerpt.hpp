// The source lines around the errors of a compile log. Pure, thread-safe.
#pragma once

#include "attnjit/rendered_kernel.hpp"

#include <string>
#include <string_view>

namespace attnjit {

// For each "<file>(<line>): error" of `log`, a few numbered lines of the file around it, the line
// itself marked. Files are known by the names the compiler uses: `program_name` for the source, the
// headers' own names, and whatever a #line directive says. "" if the log points nowhere.
std::string error_excerpts(const RenderedKernel& kernel, std::string_view program_name,
                           std::string_view log);

}  // namespace attnjit
