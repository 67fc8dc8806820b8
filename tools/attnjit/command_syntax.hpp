// The parser's definitions -> what the command line looks like, as data: for completion and the man
// page. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace attnjit {

struct OptionSyntax {
  std::vector<std::string> names;  // "--arch", "--device-preset"; of a positional: its name
  std::string description;
  std::string value;                // what it takes, "TEXT"; empty: nothing
  std::vector<std::string> values;  // known ones; empty: any
  bool takes_list = false;          // values joined by commas
  bool is_required = false;
  std::string default_text;
};

struct CommandSyntax {
  std::string name;
  std::string description;
  std::vector<OptionSyntax> positionals;
  std::vector<OptionSyntax> options;  // --help among them
};

struct ProgramSyntax {
  std::string name;
  std::string description;
  std::vector<OptionSyntax> options;
  std::vector<CommandSyntax> commands;  // sorted by name
};

ProgramSyntax describe_syntax(const CLI::App& app);

}  // namespace attnjit
