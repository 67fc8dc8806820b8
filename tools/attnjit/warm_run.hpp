// KernelJobs -> WarmRun: works through a list of kernels, each looked up in the cache and, if it is
// missing, compiled into it by a worker process. Between the list (kernel_jobs.hpp) and the report
// (warm_report.hpp). What compiles slowest begins first, so that no worker ends long after the
// others.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/kernel_provider.hpp"
#include "interrupt.hpp"
#include "kernel_jobs.hpp"

namespace attnjit {

enum class WarmState {
  compiled,
  cached,
  compile_failed,    // the kernel is at fault
  toolchain_failed,  // NVRTC is missing, or does not know the target
  crashed,           // its worker process ended
  timed_out,         // its worker process was ended
  out_of_memory,
  not_stored,  // compiled, but the cache could not be written
  not_run,     // the run ended before its turn
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

// One of that state, with the reason.
WarmedKernel failed_kernel(WarmState state, std::string problem);

struct WarmRun {
  std::vector<WarmedKernel> kernels;  // one per job, in order
  double seconds = 0;                 // wall time of the whole run
  bool interrupted = false;
};

enum class Recompile { missing, all };

// What runs jobs, and what it tells while it does. Callbacks come from the calling thread.
struct WarmSettings {
  KernelProviderOptions provider;  // on_miss, on_wait, warn and miss_trace are not used
  Recompile recompile = Recompile::missing;
  int workers = 1;                             // at most; as many as there are jobs suffice
  std::chrono::duration<double> timeout{300};  // of one compile
  std::uint64_t memory_limit_bytes = 0;        // address space of a worker; 0: none
  std::function<StopRequest()> stop;           // asked again and again

  std::function<void(std::size_t)> on_begin;     // a worker got the job
  std::function<void(std::size_t)> on_postpone;  // another process has it in hand: begun later
  std::function<void(std::size_t, const WarmedKernel&)> on_end;  // also of those never begun
  std::function<void(std::string_view)> on_notice;               // e.g. waits for another process
  // Several times a second: seconds that are left, by what kinds of kernels took.
  std::function<void(double)> on_tick;
};

// Runs the jobs. One that fails, crashes, hangs or takes too much memory is recorded and the others
// go on; a cache that cannot be written ends the run, for no further kernel could be kept. Throws
// TemplateError, std::system_error if no worker process can be started, and UsageError if none
// starts under the memory limit.
WarmRun run_warm_jobs(std::span<const KernelJob> jobs, const WarmSettings& settings);

}  // namespace attnjit
