// KernelJobs -> WarmRun: works through a list of kernels, each looked up in the cache and compiled
// into it if missing. Between the list (kernel_jobs.hpp) and the report (warm_report.hpp), and the
// only part of warming that says in which process, and in what order, a job runs.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/kernel_provider.hpp"
#include "kernel_jobs.hpp"

namespace attnjit {

enum class WarmState {
  compiled,
  cached,
  compile_failed,    // the kernel is at fault
  toolchain_failed,  // NVRTC is missing, or does not know the target
  not_stored,        // compiled, but the cache could not be written
  not_run,           // the run ended before its turn
};
std::string_view to_string(WarmState);

struct WarmedKernel {
  WarmState state = WarmState::not_run;
  std::string key;          // digest; empty unless compiled or cached
  KernelMetadata metadata;  // of a compiled or cached kernel
  std::size_t cubin_bytes = 0;
  std::optional<MissReason> miss;  // why the cache did not serve it
  std::string problem;             // why it failed
};

struct WarmRun {
  std::vector<WarmedKernel> kernels;  // one per job, in order
  double seconds = 0;                 // wall time of the whole run
  bool interrupted = false;
};

enum class Recompile { missing, all };

// What runs jobs, and what it tells while it does.
struct WarmSettings {
  KernelProviderOptions provider;  // on_miss and warn are set by run_warm_jobs
  Recompile recompile = Recompile::missing;
  std::function<bool()> interrupted;                // asked before each job
  std::function<void(const KernelJob&)> on_begin;   // before a job
  std::function<void(const WarmedKernel&)> on_end;  // after it
};

// Runs the jobs one after another. A failed compile is recorded and the others go on; a cache that
// cannot be written ends the run, for no further kernel could be kept. Throws TemplateError.
WarmRun run_warm_jobs(std::span<const KernelJob> jobs, const WarmSettings& settings);

}  // namespace attnjit
