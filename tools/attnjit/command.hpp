// The shape of a subcommand: it declares its options on the parser and, if it is the one that was
// called, sets the action that main then runs. One file per subcommand (command_<name>.cpp), one
// declaration here, one line in main.cpp. Standard output carries the result, standard error the
// progress and the warnings.
#pragma once

#include <functional>
#include <stdexcept>

namespace CLI {
class App;
}

namespace attnjit {

enum class ExitCode {
  succeeded = 0,
  failed = 1,
  usage = 2,
  unsupported_descriptor = 3,
  missing_toolchain = 5,
  interrupted = 130,  // 128 + SIGINT, as shells report it
};

using CommandAction = std::function<ExitCode()>;

// The arguments parse, yet mean nothing: an unknown preset, for one.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void add_bench_command(CLI::App& app, CommandAction& action);
void add_bundle_command(CLI::App& app, CommandAction& action);
void add_caps_command(CLI::App& app, CommandAction& action);
void add_check_command(CLI::App& app, CommandAction& action);
void add_completion_command(CLI::App& app, CommandAction& action);
void add_diff_command(CLI::App& app, CommandAction& action);
void add_doctor_command(CLI::App& app, CommandAction& action);
void add_explain_command(CLI::App& app, CommandAction& action);
void add_gc_command(CLI::App& app, CommandAction& action);
void add_import_command(CLI::App& app, CommandAction& action);
void add_ls_command(CLI::App& app, CommandAction& action);
void add_man_command(CLI::App& app, CommandAction& action);
void add_models_command(CLI::App& app, CommandAction& action);
void add_mount_command(CLI::App& app, CommandAction& action);
void add_plan_command(CLI::App& app, CommandAction& action);
void add_report_command(CLI::App& app, CommandAction& action);
void add_repro_command(CLI::App& app, CommandAction& action);
void add_res_command(CLI::App& app, CommandAction& action);
void add_roof_command(CLI::App& app, CommandAction& action);
void add_show_command(CLI::App& app, CommandAction& action);
void add_src_command(CLI::App& app, CommandAction& action);
void add_stats_command(CLI::App& app, CommandAction& action);
void add_tune_command(CLI::App& app, CommandAction& action);
void add_verify_command(CLI::App& app, CommandAction& action);
void add_warm_command(CLI::App& app, CommandAction& action);
void add_warm_worker_command(CLI::App& app, CommandAction& action);
void add_why_command(CLI::App& app, CommandAction& action);

}  // namespace attnjit
