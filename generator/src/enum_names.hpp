// Names of enumerators. Each to_string is a switch without default, so that -Wswitch (an error in
// CI) rejects a missing case; the list of all enumerators is read back from it. Private;
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

// Enumerators run from 0 without gaps; to_string answers "" past the last one.
template <typename Enum>
std::vector<std::string_view> enumerator_names() {
  std::vector<std::string_view> names;
  for (int i = 0; !to_string(static_cast<Enum>(i)).empty(); ++i) {
    names.push_back(to_string(static_cast<Enum>(i)));
  }
  return names;
}

template <typename Enum>
std::optional<Enum> parse_enumerator(std::string_view name) {
  for (int i = 0; !to_string(static_cast<Enum>(i)).empty(); ++i) {
    if (to_string(static_cast<Enum>(i)) == name) {
      return static_cast<Enum>(i);
    }
  }
  return std::nullopt;
}

}  // namespace attnjit
