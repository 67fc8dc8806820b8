// The worker processes of one warm: gives each the next job, takes its answer, ends one whose time
// is up and starts another in place of one that ended. Used by one thread. Private to warm_run.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compile_estimate.hpp"
#include "warm_protocol.hpp"
#include "warm_run.hpp"
#include "worker_process.hpp"

namespace attnjit {

class WorkerPool {
 public:
  // Refers to all three while it lives.
  WorkerPool(std::span<const KernelJob> jobs, const WarmSettings& settings, WarmRun& run);

  // Runs every job of `run` that is not_run, or as many as settings.stop allows. Throws
  // std::system_error if no process can be started, UsageError if none starts under the memory
  // limit.
  void work();

 private:
  using Clock = std::chrono::steady_clock;

  struct Worker {
    std::unique_ptr<WorkerProcess> process;  // null: to be started with the next job
    std::optional<std::size_t> job;          // in hand
    Clock::time_point since;                 // the job was begun
    Clock::time_point deadline;              // when it is ended
    bool is_ready = false;
  };

  bool gives_jobs() const;
  bool is_working() const;
  void give_jobs();
  void begin(Worker& worker, std::size_t job);
  void wait_for_answers();
  void read_answers(Worker& worker);
  void take(Worker& worker, const std::string& line);
  void put_at_end(Worker& worker);
  void end_late_ones();
  void finish(Worker& worker, WarmedKernel kernel);
  void abandon(Worker& worker, WarmState state, const std::string& problem);
  Clock::time_point deadline_of(WorkerEventKind last) const;
  double seconds_left() const;

  std::span<const KernelJob> jobs_;
  const WarmSettings& settings_;
  WarmRun& run_;
  CompileEstimate estimate_;
  std::vector<bool> handed_back_;     // by job: another process had it in hand
  std::vector<std::size_t> waiting_;  // the next job last
  std::vector<Worker> workers_;
  bool cache_is_lost_ = false;
};

}  // namespace attnjit
