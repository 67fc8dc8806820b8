// How the command writes to standard output and standard error: a stream that cannot be written
// never throws. What standard output lost, main reports once, at the end; what standard error lost
// cannot be told anywhere. Thread-safe as stdio is.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace attnjit {

// Opens /dev/null in place of every standard stream that is closed, so that no file of ours gets
// its number. Writing to such a stream still fails.
void open_closed_standard_streams();

// Control characters as \xNN, but the end of a line and tabs, so that text of others cannot steer a
// terminal.
std::string escape_controls(std::string_view text);

// Writes all of `text`, or what can be written of it.
void write_text(std::FILE* out, std::string_view text) noexcept;

// A piece of the result, to standard output.
template <typename... Values>
void print_result(fmt::format_string<Values...> format, Values&&... values) {
  write_text(stdout, fmt::format(format, std::forward<Values>(values)...));
}

// To standard error, its control characters escaped.
void write_message(std::string_view text);

template <typename... Values>
void print_message(fmt::format_string<Values...> format, Values&&... values) {
  write_message(fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace attnjit
