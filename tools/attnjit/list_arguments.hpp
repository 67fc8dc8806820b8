// Lists on the command line ("sm_80,sm_90a"): the parser alone drops empty items without a word, so
// that what a script failed to fill in would look like a shorter list.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace CLI {
class App;
}

namespace attnjit {

// What is wrong with a list among `words`, the command line that `command` has parsed; nullopt if
// nothing is.
std::optional<std::string> find_list_problem(const CLI::App& command,
                                             std::span<const char* const> words);

}  // namespace attnjit
