// attnjit man: the man page.
#include <CLI/CLI.hpp>

#include "command.hpp"
#include "man_page.hpp"
#include "standard_streams.hpp"

namespace attnjit {

// `app` holds all commands once it is asked; it outlives the action.
void add_man_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("man", "Print the man page, in roff");
  command->callback([&app, &action] {
    action = [&app] {
      write_text(stdout, man_page(describe_syntax(app), ATTNJIT_VERSION));
      return ExitCode::succeeded;
    };
  });
}

}  // namespace attnjit
