// attnjit warm: compiles into the cache every kernel that a model needs and that is not there yet.
#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.hpp"
#include "interrupt.hpp"
#include "job_shard.hpp"
#include "kernel_jobs.hpp"
#include "plan_arguments.hpp"
#include "progress.hpp"
#include "standard_streams.hpp"
#include "target_arguments.hpp"
#include "warm_report.hpp"
#include "warm_run.hpp"

namespace attnjit {
namespace {

struct WarmCommand {
  PlanArguments plan;
  TargetArguments targets;
  KernelProviderOptions provider;
  std::string shard = "0/1";
  bool recompiles = false;
  bool as_json = false;
};

std::filesystem::path require_cache_directory(const WarmCommand& command) {
  const auto directory = resolve_cache_directory(command.provider.cache_directory);
  if (!directory) {
    throw std::runtime_error(
        "no cache directory, so warming would keep nothing: neither --cache-dir nor "
        "ATTNJIT_CACHE_DIR, XDG_CACHE_HOME, HOME or the user database names one; fix: pass "
        "--cache-dir");
  }
  return *directory;
}

std::string describe_outcome(const WarmedKernel& kernel) {
  switch (kernel.state) {
    case WarmState::compiled:
      return fmt::format("compiled in {:.0f} ms", kernel.metadata.compile_milliseconds);
    case WarmState::cached:
      return "already cached";
    case WarmState::compile_failed:
      return "does not compile";
    case WarmState::toolchain_failed:
      return "no compiler for it";
    case WarmState::not_stored:
      return "compiled, but the cache cannot be written";
    case WarmState::not_run:
      break;
  }
  return "not run";
}

WarmRun run_with_progress(const WarmCommand& command, const KernelJobs& list) {
  const InterruptGuard guard;
  Progress progress(stderr, progress_style_for(stderr), static_cast<int>(list.jobs.size()));
  WarmSettings settings;
  settings.provider = command.provider;
  settings.recompile = command.recompiles ? Recompile::all : Recompile::missing;
  settings.interrupted = [&] { return guard.interrupted(); };
  settings.on_begin = [&](const KernelJob& job) {
    progress.begin(fmt::format("{} {}", describe(job.config), job.target.arch));
  };
  settings.on_end = [&](const WarmedKernel& kernel) { progress.finish(describe_outcome(kernel)); };
  return run_warm_jobs(list.jobs, settings);
}

void print_report(const WarmReport& report) {
  const std::string table = format_warm_table(report);
  const std::string refusals = format_refusals(report);
  print_result("{}{}{}{}{}\n", table, table.empty() ? "" : "\n", refusals,
               refusals.empty() ? "" : "\n", format_closing_line(report));
}

ExitCode run(const WarmCommand& command) {
  const JobShard shard = parse_job_shard(command.shard);
  const ModelPlan plan = make_plan(command.plan);
  const KernelJobs list = take_shard(list_kernel_jobs(plan, find_targets(command.targets)), shard);
  const std::filesystem::path directory = require_cache_directory(command);
  if (!plan.unread_fields.empty()) {
    print_message("attnjit: fields of {} that look like attention were not understood: {}\n",
                  command.plan.model, fmt::join(plan.unread_fields, ", "));
  }
  const WarmRun warmed = run_with_progress(command, list);
  const WarmReport report{.model = command.plan.model,
                          .model_type = plan.model_type,
                          .cache_directory = directory,
                          .list = list,
                          .run = warmed};
  print_message("{}", format_failures(report));
  if (command.as_json) {
    print_result("{}\n", warm_json(report));
  } else {
    print_report(report);
  }
  return warm_exit_code(report);
}

}  // namespace

void add_warm_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("warm", "Compile the kernels that a model needs into the cache");
  const auto warm = std::make_shared<WarmCommand>();
  add_plan_arguments(*command, warm->plan);
  add_target_arguments(*command, warm->targets);
  command->add_option("--cache-dir", warm->provider.cache_directory,
                      "Cache directory (default ATTNJIT_CACHE_DIR, else the user's cache)");
  command->add_option("--nvrtc", warm->provider.nvrtc,
                      "libnvrtc, or its directory (default ATTNJIT_NVRTC, else searched)");
  command->add_option("--templates", warm->provider.templates,
                      "Read the templates from here (default ATTNJIT_TEMPLATES, else built in)");
  command->add_option("--shard", warm->shard,
                      "index/count: only this share of the kernels (default 0/1, all)");
  command->add_flag("--force", warm->recompiles, "Compile also what the cache holds");
  command->add_flag("--json", warm->as_json, "Print one JSON document");
  command->callback([&action, warm] { action = [warm] { return run(*warm); }; });
}

}  // namespace attnjit
