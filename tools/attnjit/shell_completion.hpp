// ProgramSyntax -> the script that teaches a shell to complete it. Pure; thread-safe.
#pragma once

#include <string>

#include "command_syntax.hpp"

namespace attnjit {

std::string bash_completion(const ProgramSyntax& program);
std::string zsh_completion(const ProgramSyntax& program);
std::string fish_completion(const ProgramSyntax& program);

}  // namespace attnjit
