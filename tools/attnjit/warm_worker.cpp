#include "warm_worker.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "attnjit/kernel_renderer.hpp"
#include "warm_protocol.hpp"

namespace attnjit {
namespace {

void limit_memory(std::uint64_t bytes) {
  if (bytes == 0) {
    return;
  }
  const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) {
    throw std::system_error(errno, std::generic_category(), "memory limit of a worker");
  }
}

// Ends the process when whoever gives it jobs is gone, also while a compile runs: nobody would take
// the result, and one that hangs would stay for ever.
void end_with_input() {
  std::thread([] {
    pollfd input{.fd = STDIN_FILENO, .events = 0, .revents = 0};
    while (poll(&input, 1, -1) <= 0 || (input.revents & (POLLHUP | POLLERR)) == 0) {
    }
    _exit(static_cast<int>(ExitCode::failed));
  }).detach();
}

// The answers' own way out: what a library prints to standard output must not get among them.
std::FILE* take_standard_output() {
  const int descriptor = dup(STDOUT_FILENO);
  std::FILE* out = descriptor >= 0 ? fdopen(descriptor, "w") : nullptr;
  if (out == nullptr || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    throw std::system_error(errno, std::generic_category(), "standard output of a worker");
  }
  return out;
}

class Answers {
 public:
  explicit Answers(std::FILE* out) : out_(out) {}

  void send(const WorkerEvent& event) const {
    const std::string line = event_line(event);
    std::fwrite(line.data(), 1, line.size(), out_);
    std::fflush(out_);
  }
  void send(WorkerEventKind kind) const { send({.kind = kind, .message = "", .kernel = {}}); }

 private:
  std::FILE* out_;
};

// `warning` is the last that the cache gave: why it could not take a kernel.
WarmedKernel make(KernelProvider& provider, const KernelJob& job, Recompile recompile,
                  const Answers& answers, const std::string& warning) {
  const RenderedKernel kernel = render(job.config, job.target, provider.templates());
  const bool all = recompile == Recompile::all;
  if (all) {
    answers.send(WorkerEventKind::compiling);
  }
  ProvidedKernel provided = all ? provider.recompile(kernel) : provider.provide(kernel);
  const bool compiled = all || provided.miss.has_value();
  return {.state = !provided.is_stored ? WarmState::not_stored
                   : compiled          ? WarmState::compiled
                                       : WarmState::cached,
          .key = std::move(provided.key.digest),
          .metadata = std::move(provided.metadata),
          .cubin_bytes = provided.cubin.size(),
          .miss = provided.miss,
          .problem = provided.is_stored ? "" : warning};
}

WarmedKernel try_to_make(KernelProvider& provider, const KernelJob& job, Recompile recompile,
                         const Answers& answers, const std::string& warning) {
  try {
    return make(provider, job, recompile, answers, warning);
  } catch (const CompileError& error) {
    return failed_kernel(WarmState::compile_failed, error.what());
  } catch (const ToolchainError& error) {
    // NVRTC's name of the error: it says of its own accord where memory ended.
    const bool is_memory =
        std::string_view(error.what()).find("OUT_OF_MEMORY") != std::string::npos;
    return failed_kernel(is_memory ? WarmState::out_of_memory : WarmState::toolchain_failed,
                         error.what());
  } catch (const std::bad_alloc&) {
    return failed_kernel(WarmState::out_of_memory, "memory ended");
  }
}

}  // namespace

ExitCode run_warm_worker(const WarmWorkerSettings& settings) {
  limit_memory(settings.memory_limit_bytes);
  const Answers answers(take_standard_output());
  end_with_input();
  std::string last_warning;
  KernelProviderOptions options = settings.provider;
  options.miss_trace = std::filesystem::path();  // warming is no use of the cache
  options.warn = [&](std::string_view warning) { last_warning = warning; };
  options.on_miss = [&](const MissEvent&) { answers.send(WorkerEventKind::compiling); };
  options.on_wait = [&](std::string_view message) {
    answers.send({.kind = WorkerEventKind::waiting, .message = std::string(message), .kernel = {}});
  };
  KernelProvider provider(options);
  answers.send(WorkerEventKind::ready);
  for (std::string line; std::getline(std::cin, line);) {
    WorkerEvent done{.kind = WorkerEventKind::done, .message = "", .kernel = {}};
    done.kernel = try_to_make(provider, parse_job(line), settings.recompile, answers, last_warning);
    answers.send(done);
  }
  return ExitCode::succeeded;
}

}  // namespace attnjit
