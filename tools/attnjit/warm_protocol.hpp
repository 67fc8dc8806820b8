// What `attnjit warm` and its worker processes say to each other: lines of JSON, one job at a time.
// Pure functions, thread-safe.
//
//   to the worker (its stdin)     {"arch": "sm_90a", "config": {…}, "waits": true}  a job
//   from the worker (its stdout)  {"event": "ready"}                    NVRTC is open; once
//                                 {"event": "unfit", "message": "…"}    its memory limit is too
//                                                                       small to begin; once
//                                 {"event": "waiting", "message": "…"}  another process makes it
//                                 {"event": "compiling"}                from here on time counts
//                                 {"event": "busy"}                     answers a job that does not
//                                                                       wait: another makes it
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

enum class WorkerEventKind { ready, unfit, waiting, compiling, busy, done };
std::string_view to_string(WorkerEventKind);

struct WorkerEvent {
  WorkerEventKind kind = WorkerEventKind::ready;
  std::string message;  // of unfit and waiting
  WarmedKernel kernel;  // of done
};

// What a worker does with a job that another process has in hand.
enum class IfBusy { waits, hands_back };

struct GivenJob {
  KernelJob job;
  IfBusy if_busy = IfBusy::waits;
};

// Lines with their ends.
std::string job_line(const KernelJob& job, IfBusy if_busy);
std::string event_line(const WorkerEvent& event);

// Lines without their ends. parse_job throws ConfigJsonError; parse_event gives nullopt for what is
// no event, as a worker that is out of its mind may write.
GivenJob parse_job(std::string_view line);
std::optional<WorkerEvent> parse_event(std::string_view line);

}  // namespace attnjit
