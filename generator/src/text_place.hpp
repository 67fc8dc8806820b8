// Where in a text something is, as compilers say it. Private; pure, thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace attnjit {

// "2:5": line and column of the character at `position`, both from 1.
inline std::string place_in(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, position);
  const std::size_t line_begin =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return fmt::format("{}:{}", std::count(before.begin(), before.end(), '\n') + 1,
                     position - line_begin + 1);
}

}  // namespace attnjit
