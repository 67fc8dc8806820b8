// What a user gave, as an error message shows it: on one line of a terminal, whatever it holds.
// Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attnjit {

// `text` with control characters and malformed UTF-8 as \xNN, cut between characters and closed
// with "…" where it would be longer than about `most_bytes`.
std::string shown_text(std::string_view text, std::size_t most_bytes = 80);

}  // namespace attnjit
