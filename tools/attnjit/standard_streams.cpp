#include "standard_streams.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace attnjit {
std::string escape_controls(std::string_view text) {
  constexpr unsigned char delete_character = 0x7f;
  std::string escaped;
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    const bool is_control = code < ' ' || code == delete_character;
    if (is_control && character != '\n' && character != '\t') {
      escaped += fmt::format("\\x{:02x}", code);
    } else {
      escaped += character;
    }
  }
  return escaped;
}

void open_closed_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) == -1 && errno == EBADF) {
      // The lowest free number is this one. For reading only: a lost result must not look written.
      [[maybe_unused]] const int opened = open("/dev/null", O_RDONLY);
    }
  }
}

void write_text(std::FILE* out, std::string_view text) noexcept {
  [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), out);
}

void write_message(std::string_view text) {
  write_text(stderr, escape_controls(text));
}

}  // namespace attnjit
