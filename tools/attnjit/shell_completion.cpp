#include "shell_completion.hpp"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attnjit {
namespace {

std::vector<std::string> all_names(const std::vector<OptionSyntax>& options) {
  std::vector<std::string> names;
  for (const OptionSyntax& option : options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

std::vector<std::string> command_names(const ProgramSyntax& program) {
  std::vector<std::string> names;
  for (const CommandSyntax& command : program.commands) {
    names.push_back(command.name);
  }
  return names;
}

// `text` with each of `special` after a backslash.
std::string escape(std::string_view text, std::string_view special) {
  std::string escaped;
  for (const char character : text) {
    escaped += special.find(character) == std::string_view::npos ? "" : "\\";
    escaped += character;
  }
  return escaped;
}

// Between single quotes of a POSIX shell.
std::string quoted(std::string_view text) {
  std::string inner;
  for (const char character : text) {
    inner += character == '\'' ? "'\\''" : std::string(1, character);
  }
  return "'" + inner + "'";
}

// Cases of "<command> <option>" whose value is one of a list, or anything.
std::string bash_value_cases(const CommandSyntax& command) {
  std::string cases;
  for (const OptionSyntax& option : command.options) {
    if (option.value.empty()) {
      continue;
    }
    std::string pattern;
    for (const std::string& name : option.names) {
      pattern += fmt::format("{}'{} {}'", pattern.empty() ? "" : "|", command.name, name);
    }
    cases += option.values.empty()
                 ? fmt::format("    {}) return ;;\n", pattern)
                 : fmt::format("    {}) _attnjit_values {} {}; return ;;\n", pattern,
                               option.takes_list ? "list" : "one",
                               quoted(fmt::format("{}", fmt::join(option.values, " "))));
  }
  return cases;
}

std::string bash_command_case(const CommandSyntax& command) {
  std::vector<std::string> values;
  for (const OptionSyntax& positional : command.positionals) {
    values = positional.values;  // all of them name the same kind of thing
  }
  return fmt::format("    {}) options={} values={} ;;\n", command.name,
                     quoted(fmt::format("{}", fmt::join(all_names(command.options), " "))),
                     quoted(fmt::format("{}", fmt::join(values, " "))));
}

std::string zsh_text(std::string_view text) {
  return escape(text, "[]:\\");
}

std::string zsh_option(const OptionSyntax& option) {
  std::string specs;
  for (const std::string& name : option.names) {
    std::string spec = fmt::format("{}[{}]", name, zsh_text(option.description));
    if (!option.value.empty()) {
      const std::string action =
          option.values.empty() ? "_files"
          : option.takes_list ? fmt::format("_values -s , value {}", fmt::join(option.values, " "))
                              : fmt::format("({})", fmt::join(option.values, " "));
      spec += fmt::format(":{}:{}", zsh_text(option.value), action);
    }
    specs += " \\\n        " + quoted(spec);
  }
  return specs;
}

std::string zsh_positional(const OptionSyntax& positional) {
  const std::string action =
      positional.values.empty()
          ? "_files"
          : fmt::format("_alternative \"presets:preset:({})\" \"files:file:_files\"",
                        fmt::join(positional.values, " "));
  return " \\\n        " +
         quoted(fmt::format(":{}:{}", zsh_text(positional.names.front()), action));
}

// Between single quotes of fish.
std::string fish_quoted(std::string_view text) {
  return "'" + escape(text, "\\'") + "'";
}

std::string fish_option(const CommandSyntax& command, const OptionSyntax& option) {
  std::string line =
      fmt::format("complete -c attnjit -n '__fish_seen_subcommand_from {}'", command.name);
  for (const std::string& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.value.empty() && option.values.empty()) {
    line += " -r";
  } else if (!option.value.empty()) {
    line += fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(option.values, " "))));
  }
  return line + fmt::format(" -d {}\n", fish_quoted(option.description));
}

constexpr std::string_view bash_head =
    R"(# Completion of attnjit for bash, as `attnjit completion bash` writes it.

# _attnjit_values one|list 'values': completes the current word, or what follows its last comma.
_attnjit_values() {
  local before=''
  if [ "$1" = list ] && [[ $current == *,* ]]; then
    before=${current%,*},
  fi
  COMPREPLY=($(compgen -P "$before" -W "$2" -- "${current##*,}"))
}

_attnjit() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local options='' values=''
  COMPREPLY=()
)";

constexpr std::string_view bash_tail = R"(  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$values" -- "$current"))
  fi
}

complete -o default -F _attnjit attnjit
)";

}  // namespace

std::string bash_completion(const ProgramSyntax& program) {
  std::string script(bash_head);
  script += fmt::format(
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W {} -- \"$current\"))\n"
      "    return\n  fi\n  case \"${{COMP_WORDS[1]}} $previous\" in\n",
      quoted(fmt::format("{} {}", fmt::join(command_names(program), " "),
                         fmt::join(all_names(program.options), " "))));
  for (const CommandSyntax& command : program.commands) {
    script += bash_value_cases(command);
  }
  script += "  esac\n  case ${COMP_WORDS[1]} in\n";
  for (const CommandSyntax& command : program.commands) {
    script += bash_command_case(command);
  }
  return script + "  esac\n" + std::string(bash_tail);
}

std::string zsh_completion(const ProgramSyntax& program) {
  std::string script =
      "#compdef attnjit\n# Completion of attnjit for zsh, as `attnjit completion zsh` writes "
      "it.\n\n"
      "_attnjit() {\n  local -a commands\n  commands=(\n";
  for (const CommandSyntax& command : program.commands) {
    script += fmt::format("    {}\n", quoted(command.name + ":" + zsh_text(command.description)));
  }
  script +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  for (const CommandSyntax& command : program.commands) {
    script += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionSyntax& option : command.options) {
      script += zsh_option(option);
    }
    for (const OptionSyntax& positional : command.positionals) {
      script += zsh_positional(positional);
    }
    script += " ;;\n";
  }
  return script +
         "  esac\n}\n\n# Autoloaded, it is the function's body; sourced, a definition.\n"
         "if [ \"$funcstack[1]\" = _attnjit ]; then\n  _attnjit \"$@\"\nelse\n"
         "  compdef _attnjit attnjit\nfi\n";
}

std::string fish_completion(const ProgramSyntax& program) {
  std::string script =
      "# Completion of attnjit for fish, as `attnjit completion fish` writes it.\n";
  for (const CommandSyntax& command : program.commands) {
    script += fmt::format("complete -c attnjit -n __fish_use_subcommand -f -a {} -d {}\n",
                          command.name, fish_quoted(command.description));
  }
  for (const CommandSyntax& command : program.commands) {
    for (const OptionSyntax& option : command.options) {
      script += fish_option(command, option);
    }
    for (const OptionSyntax& positional : command.positionals) {
      if (!positional.values.empty()) {
        script += fmt::format("complete -c attnjit -n '__fish_seen_subcommand_from {}' -a {}\n",
                              command.name,
                              fish_quoted(fmt::format("{}", fmt::join(positional.values, " "))));
      }
    }
  }
  return script;
}

}  // namespace attnjit
