#include "given_words.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include <fmt/format.h>

#include "attnjit/shown_text.hpp"

namespace attnjit {
namespace {

// At the end of a word the parser makes nothing of it, and takes "[a,b]" before it for one word.
constexpr char mark = '\x1f';

// What "--name=value" gives, else the whole word.
std::string_view value_of(std::string_view word) {
  const std::size_t equals = word.find('=');
  return word.starts_with("--") && equals != std::string_view::npos ? word.substr(equals + 1)
                                                                    : word;
}

// Also what ends as if it were marked, so that taking marks off gives back every word.
bool needs_mark(std::string_view value) {
  return value.ends_with(mark) || (value.starts_with('[') && value.ends_with(']'));
}

std::string restore(std::string& text) {
  if (text.ends_with(mark)) {
    text.pop_back();
  }
  return text.empty() ? "is empty; fix: give a value, or leave it out" : "";
}

bool takes_value(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_min() > 0;
}

// Whether `word` is an option of `command`, with or without "=value".
bool is_option(const CLI::App& command, std::string_view word) {
  const std::string name(word.substr(0, word.find('=')));
  return word.starts_with('-') && command.get_option_no_throw(name) != nullptr;
}

}  // namespace

std::vector<std::string> protect_words(std::span<const char* const> words) {
  std::vector<std::string> marked(words.begin(), words.end());
  for (std::string& word : marked) {
    if (needs_mark(value_of(word))) {
      word += mark;
    }
  }
  return marked;
}

void require_whole_words(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      if (takes_value(option)) {
        option->transform(CLI::Validator(restore, ""));
      }
    }
  }
}

std::string without_marks(std::string_view message) {
  std::string text(message);
  std::erase(text, mark);
  return text;
}

std::optional<std::string> find_missing_value(const CLI::App& command,
                                              std::span<const char* const> words) {
  const auto problem = [](std::string_view name, std::string_view why, std::string_view or_else) {
    return fmt::format("{}: has no value{}; fix: give one, or leave it out{}", shown_text(name),
                       why, or_else);
  };
  for (std::size_t i = 0; i < words.size() && std::string_view(words[i]) != "--"; ++i) {
    const std::string_view word = words[i];
    if (!is_option(command, word)) {
      continue;
    }
    if (word.find('=') == word.size() - 1) {
      return problem(word.substr(0, word.size() - 1), "", "");
    }
    if (!takes_value(command.get_option_no_throw(std::string(word)))) {
      continue;
    }
    if (i + 1 == words.size()) {
      return problem(word, "", "");
    }
    if (is_option(command, words[i + 1])) {
      const std::string next = shown_text(words[i + 1]);
      return problem(word, fmt::format(", for {} follows, which is an option", next),
                     fmt::format(", or write {}={} if that is meant", shown_text(word), next));
    }
    ++i;
  }
  return std::nullopt;
}

void add_texts(CLI::App& command, const std::string& name,
               const std::function<void(const std::vector<std::string>&)>& take,
               const std::string& description) {
  // Not a vector, of which later versions of the parser make nothing where its one text is "{}";
  // they put "%%" behind that.
  const auto take_all = [take](CLI::results_t texts) {
    if (texts.size() == 2 && texts.front() == "{}" && texts.back() == "%%") {
      texts.pop_back();
    }
    take(texts);
    return true;
  };
  command.add_option(name, CLI::callback_t(take_all), description)
      ->type_name("TEXT")
      ->expected(CLI::detail::expected_max_vector_size)
      ->allow_extra_args(!name.starts_with('-'));
}

}  // namespace attnjit
