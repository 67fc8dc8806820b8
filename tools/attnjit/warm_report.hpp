// WarmRun -> what `attnjit warm` prints and the exit code it ends with. Pure functions,
// thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "command.hpp"
#include "kernel_jobs.hpp"
#include "warm_run.hpp"

namespace attnjit {

// All that a report needs. Refers to what the command holds.
struct WarmReport {
  std::vector<std::string> what;  // as it was asked for
  std::vector<std::filesystem::path> traces;
  std::string model;  // where it was one model
  std::string model_type;
  std::filesystem::path cache_directory;
  const KernelJobs& list;
  const WarmRun& run;
};

// Kernels by what became of them.
struct WarmCounts {
  std::size_t compiled = 0;
  std::size_t cached = 0;
  std::size_t failed = 0;
  std::size_t not_run = 0;
};
WarmCounts count_states(const WarmRun& run);

// One row per kernel that is in the cache now; empty if there is none.
std::string format_warm_table(const WarmReport& report);

// Each descriptor that no kernel serves, with the rules it breaks; each failed kernel with its
// reason, one of the toolchain once per target. Empty if there are none.
std::string format_refusals(const WarmReport& report);
std::string format_failures(const WarmReport& report);

// What is warm now under another key than a trace has, so that the run that missed it would miss it
// again. Empty if there is none.
std::string format_other_keys(const WarmReport& report);

// One line that counts everything: "7 kernels: 5 compiled in 2.1 s, 2 already cached".
std::string format_closing_line(const WarmReport& report);

// One JSON document, "schema": 1.
std::string warm_json(const WarmReport& report);

// 0 warmed, 1 a compile failed, crashed, hung or took too much memory, or the cache cannot be
// written, 3 no kernel serves any descriptor, 5 toolchain missing, 130 interrupted.
ExitCode warm_exit_code(const WarmReport& report);

}  // namespace attnjit
