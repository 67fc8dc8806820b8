// attnjit warm: compiles into the cache every kernel that models, descriptors or a trace of misses
// need and that is not there yet.
#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "command.hpp"
#include "given_words.hpp"
#include "interrupt.hpp"
#include "job_shard.hpp"
#include "plan_arguments.hpp"
#include "progress.hpp"
#include "standard_streams.hpp"
#include "warm_report.hpp"
#include "warm_run.hpp"
#include "warm_sources.hpp"
#include "worker_limits.hpp"

namespace attnjit {
namespace {

constexpr int most_workers = 1024;
constexpr std::uint64_t bytes_per_megabyte = 1'000'000;

struct WarmCommand {
  WarmSources sources;
  KernelProviderOptions provider;
  std::string shard = "0/1";
  std::string workers = "auto";
  double timeout_seconds = 300;
  std::uint64_t memory_limit_megabytes = 0;
  std::string progress = "auto";
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

int count_workers(const std::string& text) {
  if (text == "auto") {
    return workers_that_fit(read_machine_share());
  }
  const bool is_number = text.size() < 5 && !text.empty() && text.front() != '0' &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || std::stoi(text) > most_workers) {
    throw UsageError(
        fmt::format("--jobs = \"{}\": must be auto, or a number from 1 to {}; fix: "
                    "leave it out for as many as cores and free memory allow",
                    text, most_workers));
  }
  return std::stoi(text);
}

ProgressStyle progress_style(const std::string& name) {
  if (name == "bar") {
    return ProgressStyle::bar;
  }
  if (name == "lines") {
    return ProgressStyle::lines;
  }
  if (name == "json") {
    return ProgressStyle::json;
  }
  return name == "none" ? ProgressStyle::none : progress_style_for(stderr);
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
    case WarmState::crashed:
      return "its worker process crashed";
    case WarmState::timed_out:
      return "took too long";
    case WarmState::out_of_memory:
      return "took too much memory";
    case WarmState::not_stored:
      return "compiled, but the cache cannot be written";
    case WarmState::not_run:
      break;
  }
  return "not run";
}

ProgressJob progress_job(const KernelJob& job) {
  return {.kernel = describe(job.config), .arch = job.target.arch};
}

ProgressOutcome progress_outcome(const WarmedKernel& kernel) {
  ProgressOutcome outcome{.words = describe_outcome(kernel),
                          .state = to_string(kernel.state),
                          .milliseconds = std::nullopt,
                          .problem = kernel.problem};
  if (kernel.state == WarmState::compiled) {
    outcome.milliseconds = kernel.metadata.compile_milliseconds;
  }
  return outcome;
}

WarmRun run_with_progress(const WarmCommand& command, const std::filesystem::path& directory,
                          const WarmWork& work, ProgressStyle style) {
  const std::vector<KernelJob>& jobs = work.list.jobs;
  const InterruptGuard guard;
  WarmSettings settings;
  settings.workers = count_workers(command.workers);
  Progress progress(stderr, style, jobs.size(), settings.workers);
  for (const std::string& remark : work.remarks) {
    progress.notice(remark);
  }
  settings.provider = command.provider;
  settings.provider.cache_directory = directory;
  settings.recompile = command.recompiles ? Recompile::all : Recompile::missing;
  settings.timeout = std::chrono::duration<double>(command.timeout_seconds);
  settings.memory_limit_bytes = command.memory_limit_megabytes * bytes_per_megabyte;
  settings.stop = [&] { return guard.request(); };
  settings.on_begin = [&](std::size_t job) { progress.begin(job, progress_job(jobs[job])); };
  settings.on_postpone = [&](std::size_t job) { progress.postpone(job, progress_job(jobs[job])); };
  settings.on_end = [&](std::size_t job, const WarmedKernel& kernel) {
    progress.finish(job, progress_job(jobs[job]), progress_outcome(kernel));
  };
  settings.on_notice = [&](std::string_view message) { progress.notice(message); };
  settings.on_tick = [&](double seconds_left) { progress.tick(seconds_left); };
  return run_warm_jobs(jobs, settings);
}

void print_report(const WarmReport& report) {
  const std::string table = format_warm_table(report);
  const std::string refusals = format_refusals(report);
  print_result("{}{}{}{}{}\n", table, table.empty() ? "" : "\n", refusals,
               refusals.empty() ? "" : "\n", format_closing_line(report));
}

ExitCode run(const WarmCommand& command) {
  const JobShard shard = parse_job_shard(command.shard);
  count_workers(command.workers);
  WarmWork work = find_warm_work(command.sources);
  work.list = take_shard(std::move(work.list), shard);
  const std::filesystem::path directory = require_cache_directory(command);
  const ProgressStyle style = progress_style(command.progress);
  const WarmRun warmed = run_with_progress(command, directory, work, style);
  const WarmReport report{.what = command.sources.what,
                          .traces = command.sources.traces,
                          .model = work.model,
                          .model_type = work.model_type,
                          .cache_directory = directory,
                          .list = work.list,
                          .run = warmed};
  if (style != ProgressStyle::json) {  // whose events have told it
    print_message("{}", format_failures(report));
    print_message("{}", format_other_keys(report));
  }
  if (command.as_json) {
    print_result("{}\n", warm_json(report));
  } else {
    print_report(report);
  }
  return warm_exit_code(report);
}

void add_source_options(CLI::App& command, WarmSources& sources) {
  add_texts(
      command, "what", [&sources](const std::vector<std::string>& texts) { sources.what = texts; },
      "Models (config.json or preset) and descriptors (JSON text or file)");
  add_plan_options(command, sources.deployment);
  add_target_arguments(command, sources.targets);
  // A list of targets ends with its word, for names of models may follow.
  command.get_option("--arch")->allow_extra_args(false);
  command.get_option("--phases")->allow_extra_args(false);
  add_texts(
      command, "--from-trace",
      [&sources](const std::vector<std::string>& files) {
        sources.traces.assign(files.begin(), files.end());
      },
      "The kernels that a run missed, from the file that ATTNJIT_MISS_TRACE named");
}

void add_worker_options(CLI::App& command, WarmCommand& warm) {
  command
      .add_option("-j,--jobs", warm.workers,
                  "Worker processes; auto: one per core and per 400 MB of free memory")
      ->capture_default_str();
  command
      .add_option("--timeout", warm.timeout_seconds,
                  "Seconds that a compile may take before its worker is ended")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  command
      .add_option("--memory-limit", warm.memory_limit_megabytes,
                  "MB of address space of a worker (default 0, none)")
      ->check(CLI::Range(0, 1 << 30));
}

}  // namespace

void add_warm_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand(
      "warm", "Compile the kernels of models, descriptors or recorded misses into the cache");
  const auto warm = std::make_shared<WarmCommand>();
  add_source_options(*command, warm->sources);
  add_worker_options(*command, *warm);
  command->add_option("--cache-dir", warm->provider.cache_directory,
                      "Cache directory (default ATTNJIT_CACHE_DIR, else the user's cache)");
  command->add_option("--nvrtc", warm->provider.nvrtc,
                      "libnvrtc, or its directory (default ATTNJIT_NVRTC, else searched)");
  command->add_option("--templates", warm->provider.templates,
                      "Read the templates from here (default ATTNJIT_TEMPLATES, else built in)");
  command->add_option("--shard", warm->shard,
                      "index/count: only this share of the kernels (default 0/1, all)");
  command->add_option("--progress", warm->progress, "auto: bar on a terminal, lines elsewhere")
      ->check(CLI::IsMember({"auto", "bar", "lines", "json", "none"}))
      ->capture_default_str();
  command->add_flag("--force", warm->recompiles, "Compile also what the cache holds");
  command->add_flag("--json", warm->as_json, "Print one JSON document");
  command->callback([&action, warm] { action = [warm] { return run(*warm); }; });
}

}  // namespace attnjit
