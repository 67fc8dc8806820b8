// How far two texts are apart: for "did you mean". Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace attnjit {

// Insertions, deletions and substitutions that turn one text into the other.
std::size_t edit_distance(std::string_view from, std::string_view to);

}  // namespace attnjit
