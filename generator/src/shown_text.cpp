#include "attnjit/shown_text.hpp"

#include <fmt/format.h>

namespace attnjit {
namespace {

constexpr unsigned char byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

// The bytes of the UTF-8 sequence that `lead` opens, 0 if it opens none.
std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xc2 && lead <= 0xdf) {
    return 2;
  }
  if (lead >= 0xe0 && lead <= 0xef) {
    return 3;
  }
  return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

// The bytes of the printable character that `text` opens with, 0 if there is none.
std::size_t printable_length(std::string_view text) {
  const unsigned char lead = byte_at(text, 0);
  const std::size_t length = sequence_length(lead);
  if (length == 0 || length > text.size() || lead < 0x20 || lead == 0x7f) {
    return 0;
  }
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte_at(text, index) & 0xc0) != 0x80) {
      return 0;
    }
  }
  // U+0080 to U+009F control a terminal as the first 32 do.
  return lead == 0xc2 && byte_at(text, 1) < 0xa0 ? 0 : length;
}

}  // namespace

std::string shown_text(std::string_view text, std::size_t most_bytes) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= most_bytes) {
      return shown + "…";
    }
    const std::size_t length = printable_length(text);
    if (length == 0) {
      shown += fmt::format("\\x{:02x}", byte_at(text, 0));
      text.remove_prefix(1);
    } else {
      shown += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return shown;
}

}  // namespace attnjit
