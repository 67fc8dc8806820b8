#include "command_syntax.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>

#include "attnjit/target_device.hpp"
#include "model_source.hpp"

namespace attnjit {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// The choices that a check of membership writes into the type: "TEXT:{bf16,fp16}".
std::vector<std::string> choices_of(const std::string& type) {
  const std::size_t begin = type.find(":{");
  const std::size_t end = type.find('}', begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) {
    return {};
  }
  return split(std::string_view(type).substr(begin + 2, end - begin - 2), ',');
}

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const TargetDevice& device : target_device_presets()) {
    names.push_back(device.name);
    if (std::find(names.begin(), names.end(), device.arch) == names.end()) {
      names.push_back(device.arch);
    }
  }
  return names;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& preset : model_presets()) {
    names.emplace_back(preset_name(preset));
  }
  return names;
}

bool names_kernel(const std::string& positional) {
  return positional == "model" || positional == "what" || positional == "a" || positional == "b";
}

OptionSyntax describe_option(const CLI::Option& option) {
  OptionSyntax syntax;
  for (const std::string& name : option.get_lnames()) {
    syntax.names.push_back("--" + name);
  }
  for (const std::string& name : option.get_snames()) {
    syntax.names.push_back("-" + name);
  }
  const bool is_positional = syntax.names.empty();
  if (is_positional) {
    syntax.names.push_back(option.get_name());
  }
  syntax.description = option.get_description();
  syntax.is_required = option.get_required();
  syntax.default_text = option.get_default_str();
  if (option.get_items_expected_max() == 0) {
    return syntax;  // a flag
  }
  const std::string type = option.get_type_name();
  syntax.value = type.substr(0, type.find(':'));
  syntax.takes_list = option.get_delimiter() == ',';
  syntax.values = choices_of(type);
  if (syntax.value == "TARGET") {
    syntax.values = target_names();
  } else if (is_positional && names_kernel(syntax.names.front())) {
    syntax.values = preset_names();
  }
  return syntax;
}

void describe_options(const CLI::App& app, std::vector<OptionSyntax>& options,
                      std::vector<OptionSyntax>& positionals) {
  for (const CLI::Option* option : app.get_options()) {
    (option->get_positional() ? positionals : options).push_back(describe_option(*option));
  }
}

}  // namespace

ProgramSyntax describe_syntax(const CLI::App& app) {
  ProgramSyntax program{
      .name = app.get_name(), .description = app.get_description(), .options = {}, .commands = {}};
  std::vector<OptionSyntax> no_positionals;
  describe_options(app, program.options, no_positionals);
  // One without a group is not for people.
  const auto is_listed = [](const CLI::App* each) { return !each->get_group().empty(); };
  for (const CLI::App* each : app.get_subcommands(is_listed)) {
    CommandSyntax& command = program.commands.emplace_back();
    command.name = each->get_name();
    command.description = each->get_description();
    describe_options(*each, command.options, command.positionals);
  }
  std::sort(program.commands.begin(), program.commands.end(),
            [](const CommandSyntax& a, const CommandSyntax& b) { return a.name < b.name; });
  return program;
}

}  // namespace attnjit
