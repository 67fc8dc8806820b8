// The words of the command line reach the commands as they were given, or not at all: the parser
// alone would cut one "[a,b]" into two, take "" for an option that is not there, and take the next
// option for the value of one that has none, which is what a script's unset variables leave.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace attnjit {

// The words, marked where the parser would cut them.
std::vector<std::string> protect_words(std::span<const char* const> words);

// For every option and argument of every subcommand of `app`: takes the mark off again, and refuses
// what is empty.
void require_whole_words(CLI::App& app);

// A message of the parser, without marks.
std::string without_marks(std::string_view message);

// Which option among `words`, the command line that `command` has parsed, has no value of its own;
// nullopt if each has one.
std::optional<std::string> find_missing_value(const CLI::App& command,
                                              std::span<const char* const> words);

// Declares an argument that takes any number of texts, or an option that takes one each time;
// `take` is given all of them, each as it is.
void add_texts(CLI::App& command, const std::string& name,
               const std::function<void(const std::vector<std::string>&)>& take,
               const std::string& description);

}  // namespace attnjit
