// A user's CUDA expression, mask_expression or score_expression of a descriptor, before it goes
// into a template's slot: what could reach beyond the slot is found here, all else by the compiler.
// Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attnjit {

constexpr std::size_t most_expression_characters = 4000;

// What is wrong with `text` as one expression, and where: "2:5: ')' closes nothing"; "" if nothing
// is. Brackets must be balanced and comments end; commas stand inside of brackets, semicolons
// inside of braces (of a lambda); no preprocessor lines, backslashes, quotes or digraphs; printable
// ASCII, tabs and newlines.
std::string find_expression_fault(std::string_view text);

}  // namespace attnjit
