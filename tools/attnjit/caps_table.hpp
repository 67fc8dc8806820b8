// A SupportMatrix as text for a terminal and as the section of README.md. Pure; thread-safe.
#pragma once

#include <string>

#include "attnjit/support_matrix.hpp"

namespace attnjit {

// A block of lines per row, then a table of refusals. Consecutive numbers are shown as "1 to 256",
// and what all rows serve alike, one value, is said once.
std::string format_text(const SupportMatrix& matrix);

// The same as two tables of Markdown.
std::string format_markdown(const SupportMatrix& matrix);

}  // namespace attnjit
