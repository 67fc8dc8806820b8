#include "worker_pool.hpp"

#include <poll.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "attnjit/key_lock.hpp"
#include "command.hpp"

namespace attnjit {
namespace {

constexpr std::chrono::milliseconds tick{100};
constexpr std::uint64_t bytes_per_megabyte = 1'000'000;

// As it was given: the worker runs in the same directory.
void add_path(std::vector<std::string>& arguments, const char* option,
              const std::filesystem::path& path) {
  if (!path.empty()) {
    arguments.push_back(fmt::format("{}={}", option, path.string()));
  }
}

std::vector<std::string> worker_arguments(const WarmSettings& settings) {
  std::vector<std::string> arguments = {"warm-worker"};
  add_path(arguments, "--cache-dir", settings.provider.cache_directory);
  add_path(arguments, "--nvrtc", settings.provider.nvrtc);
  add_path(arguments, "--templates", settings.provider.templates);
  arguments.push_back(fmt::format("--memory-limit-bytes={}", settings.memory_limit_bytes));
  if (settings.recompile == Recompile::all) {
    arguments.emplace_back("--force");
  }
  return arguments;
}

bool is_answer(WorkerEventKind kind) {
  return kind == WorkerEventKind::done || kind == WorkerEventKind::busy;
}

std::string limit_of(const WarmSettings& settings) {
  return fmt::format("--memory-limit = {}", settings.memory_limit_bytes / bytes_per_megabyte);
}

// No kernel can be made under such a limit, so that the run ends.
[[noreturn]] void throw_unfit(const WarmSettings& settings, const std::string& problem) {
  throw UsageError(fmt::format(
      "{}: so many MB are too few for a worker process to start and to open NVRTC ({}); fix: "
      "allow some thousands, or leave it out: how many workers fit is told by what memory is free",
      limit_of(settings), problem));
}

// For what may have gone wrong because of it.
std::string note_of_limit(const WarmSettings& settings) {
  return settings.memory_limit_bytes == 0
             ? ""
             : fmt::format("\n{}: so many MB may be too few for this kernel; fix: allow more",
                           limit_of(settings));
}

}  // namespace

WorkerPool::WorkerPool(std::span<const KernelJob> jobs, const WarmSettings& settings, WarmRun& run)
    : jobs_(jobs), settings_(settings), run_(run), handed_back_(jobs.size(), false) {
  for (const std::size_t job : longest_first(jobs)) {
    if (run.kernels[job].state == WarmState::not_run) {
      waiting_.push_back(job);
    }
  }
  std::reverse(waiting_.begin(), waiting_.end());
  workers_.resize(std::min(waiting_.size(), static_cast<std::size_t>(settings.workers)));
}

void WorkerPool::work() {
  while (settings_.stop() != StopRequest::now) {
    if (gives_jobs()) {
      give_jobs();
    }
    if (!is_working()) {
      break;
    }
    wait_for_answers();
    end_late_ones();
    settings_.on_tick(seconds_left());
  }
  run_.interrupted = settings_.stop() != StopRequest::none && (!waiting_.empty() || is_working());
  workers_.clear();
}

bool WorkerPool::gives_jobs() const {
  return !cache_is_lost_ && settings_.stop() == StopRequest::none;
}

bool WorkerPool::is_working() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.job.has_value(); });
}

void WorkerPool::give_jobs() {
  for (Worker& worker : workers_) {
    if (worker.job || waiting_.empty()) {
      continue;
    }
    try {
      begin(worker, waiting_.back());
    } catch (const std::system_error& error) {
      if (!is_working()) {
        throw;
      }
      settings_.on_notice(fmt::format("going on with fewer workers: {}", error.what()));
      return;  // tried again after the next answer
    }
    waiting_.pop_back();
  }
}

void WorkerPool::begin(Worker& worker, std::size_t job) {
  if (!worker.process) {
    worker.process = std::make_unique<WorkerProcess>(worker_arguments(settings_));
    worker.is_ready = false;
  }
  worker.job = job;
  worker.since = Clock::now();
  worker.deadline = worker.is_ready ? deadline_of(WorkerEventKind::ready)
                                    : deadline_of(WorkerEventKind::compiling);
  // A job that another process has in hand is put at the end once; where no other is left, and the
  // second time, it is waited for.
  const bool hands_back = !handed_back_[job] && waiting_.size() > 1;
  worker.process->send(job_line(jobs_[job], hands_back ? IfBusy::hands_back : IfBusy::waits));
  settings_.on_begin(job);
}

// Opening NVRTC and a compile have the time that was asked for; before the compile another process
// may have to be waited for, which is no fault of the job.
WorkerPool::Clock::time_point WorkerPool::deadline_of(WorkerEventKind last) const {
  const std::chrono::duration<double> wait =
      last == WorkerEventKind::compiling ? std::chrono::milliseconds(0) : LockPatience().limit;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(wait + settings_.timeout);
}

void WorkerPool::wait_for_answers() {
  std::vector<pollfd> descriptors;
  std::vector<Worker*> asked;
  for (Worker& worker : workers_) {
    if (worker.process) {
      descriptors.push_back({.fd = worker.process->descriptor(), .events = POLLIN, .revents = 0});
      asked.push_back(&worker);
    }
  }
  // A signal ends the wait, and is asked for by whoever called.
  if (poll(descriptors.data(), descriptors.size(), static_cast<int>(tick.count())) <= 0) {
    return;
  }
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    if (descriptors[i].revents != 0) {
      read_answers(*asked[i]);
    }
  }
}

void WorkerPool::read_answers(Worker& worker) {
  const auto lines = worker.process->read_lines();
  if (!lines) {
    const std::string end = worker.process->end();
    if (!worker.is_ready && settings_.memory_limit_bytes != 0) {
      throw_unfit(settings_, "it " + end);
    }
    const bool is_memory = end.find("out of memory") != std::string::npos;  // NVRTC's last words
    abandon(worker, is_memory ? WarmState::out_of_memory : WarmState::crashed,
            "its worker process " + end + note_of_limit(settings_));
    return;
  }
  for (const std::string& line : *lines) {
    if (worker.process) {
      take(worker, line);
    }
  }
}

void WorkerPool::take(Worker& worker, const std::string& line) {
  auto event = parse_event(line);
  if (!event || (is_answer(event->kind) && !worker.job)) {
    abandon(worker, WarmState::crashed, "its worker process answered what is no answer: " + line);
    return;
  }
  switch (event->kind) {
    case WorkerEventKind::ready:
      worker.is_ready = true;
      [[fallthrough]];
    case WorkerEventKind::compiling:
      worker.deadline = deadline_of(event->kind);
      break;
    case WorkerEventKind::unfit:
      throw_unfit(settings_, event->message);
    case WorkerEventKind::waiting:
      settings_.on_notice(event->message);
      break;
    case WorkerEventKind::busy:
      put_at_end(worker);
      break;
    case WorkerEventKind::done: {
      const bool is_spent = event->kernel.state == WarmState::out_of_memory;
      if (is_spent || event->kernel.state == WarmState::compile_failed) {
        // Where memory ends NVRTC may say no more than that the source does not compile.
        event->kernel.problem += note_of_limit(settings_);
      }
      finish(worker, std::move(event->kernel));
      if (is_spent) {
        worker.process.reset();  // what lost its memory half-way is not trusted with another job
      }
      break;
    }
  }
}

void WorkerPool::put_at_end(Worker& worker) {
  handed_back_[*worker.job] = true;
  waiting_.insert(waiting_.begin(), *worker.job);
  settings_.on_postpone(*worker.job);
  worker.job.reset();
}

void WorkerPool::end_late_ones() {
  const auto now = Clock::now();
  for (Worker& worker : workers_) {
    if (worker.job && worker.deadline < now) {
      abandon(worker, WarmState::timed_out,
              fmt::format("was not done after {:g} s, and its worker process was ended; fix: pass "
                          "a longer --timeout if the kernel only compiles slowly",
                          settings_.timeout.count()));
    }
  }
}

void WorkerPool::finish(Worker& worker, WarmedKernel kernel) {
  const std::size_t job = *worker.job;
  worker.job.reset();
  if (kernel.state == WarmState::compiled) {
    const std::chrono::duration<double, std::milli> taken = Clock::now() - worker.since;
    estimate_.record(jobs_[job], taken.count());
  }
  cache_is_lost_ = cache_is_lost_ || kernel.state == WarmState::not_stored;
  run_.kernels[job] = std::move(kernel);
  settings_.on_end(job, run_.kernels[job]);
}

// The process goes, and the job in hand, if any, fails.
void WorkerPool::abandon(Worker& worker, WarmState state, const std::string& problem) {
  worker.process.reset();
  if (worker.job) {
    const KernelJob& job = jobs_[*worker.job];
    finish(worker, failed_kernel(state, fmt::format("kernel {} for {} {}\nconfig: {}",
                                                    kernel_name(job.config), job.target.arch,
                                                    problem, to_json(job.config))));
  }
}

double WorkerPool::seconds_left() const {
  // Those in hand have run a part of their time.
  std::vector<const KernelJob*> jobs;
  double begun = 0;
  for (const Worker& worker : workers_) {
    if (worker.job) {
      jobs.push_back(&jobs_[*worker.job]);
      const std::chrono::duration<double> elapsed = Clock::now() - worker.since;
      begun += std::min(elapsed.count(), estimate_.milliseconds(*jobs.back()) / 1000);
    }
  }
  std::transform(waiting_.rbegin(), waiting_.rend(), std::back_inserter(jobs),
                 [&](std::size_t job) { return &jobs_[job]; });
  const int workers = static_cast<int>(workers_.size());
  return std::max(0.0, estimate_.seconds(jobs, workers) - begun / std::max(1, workers));
}

}  // namespace attnjit
