#include "decimal_numbers.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "attnjit/shown_text.hpp"

namespace attnjit {
namespace {

bool is_decimal(std::string_view text) {
  if (!text.empty() && text.front() == '-') {
    text.remove_prefix(1);
  }
  const bool is_zero_led = text.size() > 1 && text.front() == '0';
  return !text.empty() && !is_zero_led &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string find_problem(const std::string& text) {
  return is_decimal(text)
             ? ""
             : fmt::format("{} is not a decimal number without leading zeros", shown_text(text));
}

// The parser alone would wrap numbers that are negative, and bound those that are too large.
std::string find_unsigned_problem(const std::string& text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && last == end) {
    return find_problem(text);
  }
  return fmt::format("{} is not a whole number from 0 to {}", shown_text(text),
                     std::numeric_limits<std::uint64_t>::max());
}

// The parser alone would take "nan", "inf" and 0x1p3.
std::string find_real_problem(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && last == end && std::isfinite(value)
             ? ""
             : fmt::format("{} is not a finite decimal number", shown_text(text));
}

}  // namespace

void require_decimal_numbers(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      const std::string type = option->get_type_name();
      if (type.starts_with("INT")) {
        option->check(find_problem);
      } else if (type.starts_with("UINT")) {
        option->check(find_unsigned_problem);
      } else if (type.starts_with("FLOAT")) {
        option->check(find_real_problem);
      }
    }
  }
}

}  // namespace attnjit
