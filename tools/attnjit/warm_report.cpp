#include "warm_report.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "text_table.hpp"

namespace attnjit {
namespace {

constexpr std::size_t shown_key_digits = 12;

constexpr std::array<TableColumn, 9> columns = {{{"kernel"},
                                                 {"role"},
                                                 {"target"},
                                                 {"registers", Alignment::right},
                                                 {"spills", Alignment::right},
                                                 {"shared memory", Alignment::right},
                                                 {"cubin KB", Alignment::right},
                                                 {"compile ms", Alignment::right},
                                                 {"key"}}};

std::size_t count_state(const WarmRun& run, WarmState state) {
  return static_cast<std::size_t>(
      std::count_if(run.kernels.begin(), run.kernels.end(),
                    [&](const WarmedKernel& kernel) { return kernel.state == state; }));
}

std::vector<std::string> table_row(const KernelJob& job, const WarmedKernel& kernel) {
  const KernelResources& resources = kernel.metadata.resources;
  const bool cached = kernel.state == WarmState::cached;
  return {describe(job.config),
          std::string(to_string(role_of(job.config))),
          job.target.arch,
          fmt::format("{}", resources.registers),
          fmt::format("{}", resources.spill_store_bytes + resources.spill_load_bytes),
          fmt::format("{}", kernel.metadata.shared_memory_bytes + resources.static_shared_bytes),
          fmt::format("{:.1f}", static_cast<double>(kernel.cubin_bytes) / 1024),
          cached ? "cached" : fmt::format("{:.0f}", kernel.metadata.compile_milliseconds),
          kernel.key.substr(0, shown_key_digits)};
}

std::string count_refused(const WarmReport& report) {
  return count_of(report.list.refused.size(), "descriptor") + " refused";
}

// "5 compiled in 2.1 s, 2 already cached, 1 failed"
std::string count_outcomes(const WarmReport& report) {
  const WarmCounts counts = count_states(report.run);
  std::vector<std::string> parts;
  if (counts.compiled > 0) {
    parts.push_back(fmt::format("{} compiled in {:.1f} s", counts.compiled, report.run.seconds));
  }
  if (counts.cached > 0) {
    parts.push_back(fmt::format("{} already cached", counts.cached));
  }
  if (counts.failed > 0) {
    parts.push_back(fmt::format("{} failed", counts.failed));
  }
  if (counts.not_run > 0) {
    parts.push_back(fmt::format("{} not reached", counts.not_run));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string summarize_kernels(const WarmReport& report) {
  const std::size_t total = report.run.kernels.size();
  if (total == 0) {
    return "no kernels";
  }
  if (report.run.interrupted) {
    return fmt::format("interrupted; {}: {}; the cache is whole, run the command again to go on",
                       count_of(total, "kernel"), count_outcomes(report));
  }
  if (count_states(report.run).cached == total) {
    return total == 1 ? "nothing to compile: the 1 kernel is cached"
                      : fmt::format("nothing to compile: all {} kernels are cached", total);
  }
  return fmt::format("{}: {}", count_of(total, "kernel"), count_outcomes(report));
}

constexpr std::string_view not_stored_advice =
    "Warming without a cache keeps nothing, so it stops here; name a directory that can be written "
    "with --cache-dir or ATTNJIT_CACHE_DIR.\n";

// Kernels that failed for one reason.
struct Failure {
  const KernelJob* job;        // of the first
  const WarmedKernel* kernel;  // of the first
  std::vector<std::string> names;
};

// What is wrong with the toolchain is wrong for every kernel of the target: told once.
void add_failure(std::vector<Failure>& failures, const KernelJob& job, const WarmedKernel& kernel) {
  const auto same = std::find_if(failures.begin(), failures.end(), [&](const Failure& other) {
    return kernel.state == WarmState::toolchain_failed && other.kernel->state == kernel.state &&
           other.job->target.arch == job.target.arch;
  });
  if (same != failures.end()) {
    same->names.push_back(describe(job.config));
  } else {
    failures.push_back({&job, &kernel, {describe(job.config)}});
  }
}

}  // namespace

WarmCounts count_states(const WarmRun& run) {
  WarmCounts counts;
  for (const WarmedKernel& kernel : run.kernels) {
    switch (kernel.state) {
      case WarmState::compiled:
        ++counts.compiled;
        break;
      case WarmState::cached:
        ++counts.cached;
        break;
      case WarmState::compile_failed:
      case WarmState::toolchain_failed:
      case WarmState::crashed:
      case WarmState::timed_out:
      case WarmState::out_of_memory:
      case WarmState::not_stored:
        ++counts.failed;
        break;
      case WarmState::not_run:
        ++counts.not_run;
        break;
    }
  }
  return counts;
}

std::string format_warm_table(const WarmReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < report.run.kernels.size(); ++i) {
    const WarmedKernel& kernel = report.run.kernels[i];
    if (kernel.state == WarmState::compiled || kernel.state == WarmState::cached) {
      rows.push_back(table_row(report.list.jobs[i], kernel));
    }
  }
  return rows.empty() ? "" : format_table(columns, rows);
}

std::string format_refusals(const WarmReport& report) {
  std::string text;
  for (const RefusedDescriptor& refused : report.list.refused) {
    text += format_refused(refused);
  }
  return text;
}

std::string format_failures(const WarmReport& report) {
  std::vector<Failure> failures;
  for (std::size_t i = 0; i < report.run.kernels.size(); ++i) {
    if (!report.run.kernels[i].problem.empty()) {
      add_failure(failures, report.list.jobs[i], report.run.kernels[i]);
    }
  }
  std::string text;
  for (const Failure& failure : failures) {
    text += fmt::format("failed, {}: {}\n{}\n", failure.job->target.arch,
                        fmt::join(failure.names, "; "), failure.kernel->problem);
    if (failure.kernel->state == WarmState::not_stored) {
      text += not_stored_advice;
    }
  }
  return text;
}

std::string format_other_keys(const WarmReport& report) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < report.run.kernels.size(); ++i) {
    const KernelJob& job = report.list.jobs[i];
    const std::string& key = report.run.kernels[i].key;
    if (!job.traced_key.empty() && !key.empty() && key != job.traced_key) {
      names.push_back(fmt::format("  {} {}: {}, traced as {}", describe(job.config),
                                  job.target.arch, key, job.traced_key));
    }
  }
  return names.empty()
             ? ""
             : fmt::format(
                   "{} under another key than in the trace, so that the run would miss it "
                   "again; warm with the NVRTC, the version and the templates of the run:"
                   "\n{}\n",
                   count_of(names.size(), "kernel"), fmt::join(names, "\n"));
}

std::string format_closing_line(const WarmReport& report) {
  std::string line = summarize_kernels(report);
  if (!report.list.refused.empty()) {
    line += "; " + count_refused(report);
  }
  return line;
}

ExitCode warm_exit_code(const WarmReport& report) {
  if (report.run.interrupted) {
    return ExitCode::interrupted;
  }
  const std::size_t failed = count_states(report.run).failed;
  if (failed > 0) {
    const bool is_toolchain = count_state(report.run, WarmState::toolchain_failed) == failed;
    return is_toolchain ? ExitCode::missing_toolchain : ExitCode::failed;
  }
  const bool all_refused = report.list.jobs.empty() && !report.list.refused.empty();
  return all_refused ? ExitCode::unsupported_descriptor : ExitCode::succeeded;
}

}  // namespace attnjit
