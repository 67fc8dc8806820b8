// A file of misses that a run recorded (ATTNJIT_MISS_TRACE) -> the kernels that would have spared
// it them. Pure but for reading the file; thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_jobs.hpp"

namespace attnjit {

struct MissTraceFile {
  std::vector<KernelJob> jobs;      // each kernel once, in order of its first miss
  std::vector<std::string> unread;  // "misses.jsonl:7: …": lines that hold no miss, and why
};

// Reads the text of a trace; `name` is shown with lines that cannot be read. A line that was cut
// off by a full disk or a killed process loses one kernel, not the trace.
MissTraceFile read_miss_trace_text(std::string_view text, std::string_view name);

// The same of a file. Throws UsageError for one that cannot be read, and for one of which no line
// holds a miss, though it has some.
MissTraceFile read_miss_trace(const std::filesystem::path& file);

}  // namespace attnjit
