// A text as its lines, for logs and sources. Views into the text; pure, thread-safe.
#pragma once

#include <string_view>
#include <vector>

namespace attnjit {

// Lines without their ends; no empty line after a final newline.
std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace attnjit
