#include "list_arguments.hpp"

#include <CLI/CLI.hpp>
#include <string_view>

#include <fmt/format.h>

#include "attnjit/shown_text.hpp"

namespace attnjit {
namespace {

bool has_empty_item(std::string_view list, char delimiter) {
  const std::string two(2, delimiter);
  return list.empty() || list.front() == delimiter || list.back() == delimiter ||
         list.find(two) != std::string_view::npos;
}

// The value in `word` if that is "<name>=<value>".
std::optional<std::string_view> value_in(std::string_view word, const std::string& name) {
  return word.starts_with(name + "=") ? std::optional(word.substr(name.size() + 1)) : std::nullopt;
}

// The lists that `words` give to the option called `name`.
std::vector<std::string_view> lists_of(const CLI::Option& option, const std::string& name,
                                       std::span<const char* const> words) {
  std::vector<std::string_view> lists;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (const auto value = value_in(words[i], name)) {
      lists.push_back(*value);
    }
    if (words[i] != name) {
      continue;
    }
    while (i + 1 < words.size() && !std::string_view(words[i + 1]).starts_with("-")) {
      lists.emplace_back(words[++i]);
      if (!option.get_allow_extra_args()) {
        break;
      }
    }
  }
  return lists;
}

}  // namespace

std::optional<std::string> find_list_problem(const CLI::App& command,
                                             std::span<const char* const> words) {
  for (const CLI::Option* option : command.get_options()) {
    const char delimiter = option->get_delimiter();
    if (delimiter == '\0' || option->count() == 0) {
      continue;
    }
    for (const std::string& long_name : option->get_lnames()) {
      const std::string name = "--" + long_name;
      for (const std::string_view list : lists_of(*option, name, words)) {
        if (has_empty_item(list, delimiter)) {
          return fmt::format(
              "{} = \"{}\": has an empty item; fix: give values with one \"{}\" "
              "between them, and none at the ends",
              name, shown_text(list), delimiter);
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace attnjit
