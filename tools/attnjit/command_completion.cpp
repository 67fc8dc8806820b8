// attnjit completion: the script that teaches a shell to complete attnjit.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "command.hpp"
#include "shell_completion.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

ExitCode run(const CLI::App& app, const std::string& shell) {
  const ProgramSyntax program = describe_syntax(app);
  write_text(stdout, shell == "bash"  ? bash_completion(program)
                     : shell == "zsh" ? zsh_completion(program)
                                      : fish_completion(program));
  return ExitCode::succeeded;
}

}  // namespace

// `app` holds all commands once it is asked; it outlives the action.
void add_completion_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("completion", "Print a shell's completion script");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback(
      [&app, &action, shell] { action = [&app, shell] { return run(app, *shell); }; });
}

}  // namespace attnjit
