// ProgramSyntax -> attnjit(1) in roff. Pure; thread-safe.
#pragma once

#include <string>

#include "command_syntax.hpp"

namespace attnjit {

std::string man_page(const ProgramSyntax& program, const std::string& version);

}  // namespace attnjit
