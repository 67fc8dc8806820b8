#include "key_sections.hpp"

#include <charconv>
#include <cstddef>

namespace attnjit {
namespace {

// Takes one "<tag> <length>\n<bytes>\n" off the front of `text`; nullopt if there is none.
std::optional<KeySection> take_section(std::string_view& text) {
  const std::size_t line_end = text.find('\n');
  const std::size_t blank = text.rfind(' ', line_end);
  if (line_end == std::string_view::npos || blank == std::string_view::npos) {
    return std::nullopt;
  }
  std::size_t length = 0;
  const char* digits_end = text.data() + line_end;
  const auto [end, error] = std::from_chars(text.data() + blank + 1, digits_end, length);
  if (error != std::errc{} || end != digits_end || length >= text.size() - line_end - 1) {
    return std::nullopt;
  }
  const KeySection section{text.substr(0, blank), text.substr(line_end + 1, length)};
  text.remove_prefix(line_end + 1 + length + 1);
  return section;
}

}  // namespace

std::optional<std::vector<KeySection>> split_key_text(std::string_view key_text) {
  std::vector<KeySection> sections;
  while (!key_text.empty()) {
    const auto section = take_section(key_text);
    if (!section) {
      return std::nullopt;
    }
    sections.push_back(*section);
  }
  return sections;
}

}  // namespace attnjit
