// What `attnjit warm` and its worker processes say to each other: lines of JSON, one job at a time.
// Pure functions, thread-safe.
//
//   to the worker (its stdin)     {"arch": "sm_90a", "config": {…}}     a job
//   from the worker (its stdout)  {"event": "ready"}                    NVRTC is open; once
//                                 {"event": "waiting", "message": "…"}  another process makes it
//                                 {"event": "compiling"}                from here on time counts
//                                 {"event": "done", "kernel": {…}}      answers the job
//
// Everything else about a worker is said on its command line (command_warm_worker.cpp). The end of
// its stdin ends a worker at once, whatever it is doing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernel_jobs.hpp"
#include "warm_run.hpp"

namespace attnjit {

enum class WorkerEventKind { ready, waiting, compiling, done };
std::string_view to_string(WorkerEventKind);

struct WorkerEvent {
  WorkerEventKind kind = WorkerEventKind::ready;
  std::string message;  // of waiting
  WarmedKernel kernel;  // of done
};

// Lines with their ends.
std::string job_line(const KernelJob& job);
std::string event_line(const WorkerEvent& event);

// Lines without their ends. parse_job throws ConfigJsonError; parse_event gives nullopt for what is
// no event, as a worker that is out of its mind may write.
KernelJob parse_job(std::string_view line);
std::optional<WorkerEvent> parse_event(std::string_view line);

}  // namespace attnjit
