// attnjit: parses the command line, runs one command, and maps what it throws to an exit code.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/driver_error.hpp"
#include "attnjit/kernel_compiler.hpp"
#include "attnjit/model_plan.hpp"
#include "attnjit/shown_text.hpp"
#include "command.hpp"
#include "decimal_numbers.hpp"
#include "given_words.hpp"
#include "list_arguments.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

using AddCommand = void (*)(CLI::App&, CommandAction&);

constexpr AddCommand commands[] = {
    add_bench_command,      add_bundle_command,      add_caps_command,   add_check_command,
    add_completion_command, add_diff_command,        add_doctor_command, add_explain_command,
    add_gc_command,         add_import_command,      add_ls_command,     add_man_command,
    add_models_command,     add_mount_command,       add_plan_command,   add_report_command,
    add_repro_command,      add_res_command,         add_roof_command,   add_show_command,
    add_src_command,        add_stats_command,       add_tune_command,   add_verify_command,
    add_warm_command,       add_warm_worker_command, add_why_command,
};

ExitCode report(const std::exception& error, ExitCode code) {
  print_message("attnjit: {}\n", error.what());
  return code;
}

// The one place where an exception becomes an exit code.
ExitCode run(const CommandAction& action) {
  try {
    return action();
  } catch (const UsageError& error) {
    return report(error, ExitCode::usage);
  } catch (const DescriptorError& error) {
    return report(error, ExitCode::unsupported_descriptor);
  } catch (const ModelError& error) {
    return report(error, ExitCode::unsupported_descriptor);
  } catch (const ToolchainError& error) {
    return report(error, ExitCode::missing_toolchain);
  } catch (const DriverError& error) {
    return report(error, ExitCode::missing_toolchain);
  } catch (const std::exception& error) {
    return report(error, ExitCode::failed);
  }
}

// A full disk or a closed pipe must not look like success.
ExitCode flush_output(ExitCode code) {
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (is_written || code != ExitCode::succeeded) {
    return code;
  }
  print_message("attnjit: cannot write to standard output\n");
  return ExitCode::failed;
}

// The parser would only say that a command is missing.
ExitCode report_unknown_command(const CLI::App& app) {
  std::vector<std::string> names;
  const auto is_listed = [](const CLI::App* command) { return !command->get_group().empty(); };
  for (const CLI::App* command : app.get_subcommands(is_listed)) {
    names.push_back(command->get_name());
  }
  print_message("attnjit: \"{}\" is not a command; fix: name one of {}\n",
                shown_text(without_marks(app.remaining().front())), fmt::join(names, ", "));
  return ExitCode::usage;
}

// What the words of the command that was called lack, which the parser does not see, or takes for
// something else.
std::optional<std::string> find_word_problem(const CLI::App& app,
                                             std::span<const char* const> words) {
  if (app.get_subcommands().empty()) {
    return std::nullopt;
  }
  const CLI::App& command = *app.get_subcommands().front();
  auto problem = find_missing_value(command, words);
  return problem ? problem : find_list_problem(command, words);
}

ExitCode report_word_problem(const std::string& problem) {
  print_message("attnjit: {}\n", problem);
  return ExitCode::usage;
}

// Help and version end parsing too.
ExitCode report_end_of_parsing(const CLI::App& app, const CLI::ParseError& error,
                               std::span<const char* const> words) {
  const bool is_error = error.get_exit_code() != 0;
  if (is_error && app.get_subcommands().empty() && !app.remaining().empty()) {
    return report_unknown_command(app);
  }
  if (const auto problem = find_word_problem(app, words); is_error && problem) {
    return report_word_problem(*problem);
  }
  std::ostringstream result;
  std::ostringstream message;
  app.exit(error, result, message);
  print_result("{}", result.str());
  write_message(without_marks(message.str()));
  return is_error ? ExitCode::usage : ExitCode::succeeded;
}

void parse(CLI::App& app, std::span<const char* const> words) {
  const std::vector<std::string> whole = protect_words(words);
  std::vector<const char*> pointers;
  for (const std::string& word : whole) {
    pointers.push_back(word.c_str());
  }
  app.parse(static_cast<int>(pointers.size()), pointers.data());
}

ExitCode run_command_line(int argc, char** argv) {
  CLI::App app("Attention kernels made at run time", "attnjit");
  app.set_version_flag("--version", "attnjit " ATTNJIT_VERSION);
  app.require_subcommand(1);
  CommandAction action;
  for (const AddCommand add_command : commands) {
    add_command(app, action);
  }
  require_decimal_numbers(app);
  require_whole_words(app);
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  try {
    parse(app, words);
  } catch (const CLI::ParseError& error) {
    return report_end_of_parsing(app, error, words);
  }
  if (const auto problem = find_word_problem(app, words)) {
    return report_word_problem(*problem);
  }
  return run(action);
}

}  // namespace
}  // namespace attnjit

int main(int argc, char** argv) {
  attnjit::open_closed_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too large fails its write instead
  return static_cast<int>(attnjit::flush_output(attnjit::run_command_line(argc, argv)));
}
