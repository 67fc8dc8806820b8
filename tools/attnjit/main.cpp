// attnjit: parses the command line, runs one command, and maps what it throws to an exit code.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/driver_error.hpp"
#include "attnjit/kernel_compiler.hpp"
#include "attnjit/model_plan.hpp"
#include "command.hpp"

namespace attnjit {
namespace {

using AddCommand = void (*)(CLI::App&, CommandAction&);

constexpr AddCommand commands[] = {
    add_bench_command, add_check_command, add_doctor_command, add_models_command,
    add_plan_command,  add_src_command,   add_warm_command,
};

ExitCode report(const std::exception& error, ExitCode code) {
  fmt::print(stderr, "attnjit: {}\n", error.what());
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
  fmt::print(stderr, "attnjit: cannot write to standard output\n");
  return ExitCode::failed;
}

int run_command_line(int argc, char** argv) {
  CLI::App app("Attention kernels made at run time", "attnjit");
  app.set_version_flag("--version", "attnjit " ATTNJIT_VERSION);
  app.require_subcommand(1);
  CommandAction action;
  for (const AddCommand add_command : commands) {
    add_command(app, action);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_error = app.exit(error) != 0;
    return static_cast<int>(is_error ? ExitCode::usage : ExitCode::succeeded);
  }
  return static_cast<int>(flush_output(run(action)));
}

}  // namespace
}  // namespace attnjit

int main(int argc, char** argv) {
  return attnjit::run_command_line(argc, argv);
}
