#include "decimal_numbers.hpp"

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

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

}  // namespace

void require_decimal_numbers(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_type_name().rfind("INT", 0) == 0) {
        option->check(find_problem);
      }
    }
  }
}

}  // namespace attnjit
