// The worker process of `attnjit warm`: takes jobs on standard input and answers on standard output
// (warm_protocol.hpp), until its input ends. NVRTC is loaded once, and whatever a compile does to
// the process stays in it.
#pragma once

#include <cstdint>

#include "command.hpp"
#include "warm_run.hpp"

namespace attnjit {

struct WarmWorkerSettings {
  KernelProviderOptions provider;  // on_miss, on_wait, warn and miss_trace are set by the worker
  Recompile recompile = Recompile::missing;
  std::uint64_t memory_limit_bytes = 0;  // of address space; 0: none
};

// Throws std::runtime_error where the memory limit cannot be set, TemplateError, and
// ConfigJsonError for a line that is no job.
ExitCode run_warm_worker(const WarmWorkerSettings& settings);

}  // namespace attnjit
