#include "warm_worker.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "attnjit/kernel_renderer.hpp"
#include "attnjit/nvrtc_compiler.hpp"
#include "warm_protocol.hpp"

namespace attnjit {
namespace {

// The soft limit alone, so that what fails under it can be tried without.
void limit_memory(std::uint64_t bytes) {
  rlimit limit{};
  if (bytes == 0) {
    return;
  }
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
  if (setrlimit(RLIMIT_AS, &limit) != 0) {
    throw std::system_error(errno, std::generic_category(), "memory limit of a worker");
  }
}

// Whether there is an NVRTC to open where memory has no limit.
bool opens_without_limit(const std::filesystem::path& nvrtc) {
  limit_memory(RLIM_INFINITY);
  try {
    const NvrtcCompiler compiler(nvrtc);
    return true;
  } catch (const ToolchainError&) {
    return false;
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

// Whether another process has the kernel in hand: a look, not a wait.
bool is_made_elsewhere(KernelProvider& provider, const KernelJob& job) {
  const KernelLookup lookup =
      provider.look_up(render(job.config, job.target, provider.templates()));
  const LockPatience none{.notice = {}, .limit = {}, .on_wait = {}};
  return !lookup.provided && provider.cache().lock(lookup.key, none).refusal() == LockRefusal::busy;
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

WorkerEvent answer_to(KernelProvider& provider, const GivenJob& given, Recompile recompile,
                      const Answers& answers, const std::string& warning) {
  const bool hands_back = given.if_busy == IfBusy::hands_back && recompile == Recompile::missing;
  if (hands_back && is_made_elsewhere(provider, given.job)) {
    return {.kind = WorkerEventKind::busy, .message = "", .kernel = {}};
  }
  return {.kind = WorkerEventKind::done,
          .message = "",
          .kernel = try_to_make(provider, given.job, recompile, answers, warning)};
}

// Opens all that a worker needs, under its limit. Why the limit is too small for that, or empty.
std::string open_provider(const WarmWorkerSettings& settings, const KernelProviderOptions& options,
                          std::unique_ptr<KernelProvider>& provider) {
  const bool has_limit = settings.memory_limit_bytes != 0;
  try {
    end_with_input();
    provider = std::make_unique<KernelProvider>(options);
  } catch (const std::bad_alloc&) {
    return "memory ended";
  } catch (const std::system_error& error) {  // no thread can be made
    if (has_limit) {
      return error.what();
    }
    throw;
  }
  std::string problem = provider->compiler_problem();
  if (has_limit && !problem.empty() && opens_without_limit(settings.provider.nvrtc)) {
    return problem;
  }
  limit_memory(settings.memory_limit_bytes);
  return "";
}

}  // namespace

ExitCode run_warm_worker(const WarmWorkerSettings& settings) {
  const Answers answers(take_standard_output());
  limit_memory(settings.memory_limit_bytes);
  std::string last_warning;
  KernelProviderOptions options = settings.provider;
  options.miss_trace = std::filesystem::path();  // warming is no use of the cache
  options.warn = [&](std::string_view warning) { last_warning = warning; };
  options.on_miss = [&](const MissEvent&) { answers.send(WorkerEventKind::compiling); };
  options.on_wait = [&](std::string_view message) {
    answers.send({.kind = WorkerEventKind::waiting, .message = std::string(message), .kernel = {}});
  };
  std::unique_ptr<KernelProvider> provider;
  if (const std::string problem = open_provider(settings, options, provider); !problem.empty()) {
    answers.send({.kind = WorkerEventKind::unfit, .message = problem, .kernel = {}});
    return ExitCode::failed;
  }
  answers.send(WorkerEventKind::ready);
  for (std::string line; std::getline(std::cin, line);) {
    answers.send(answer_to(*provider, parse_job(line), settings.recompile, answers, last_warning));
  }
  return ExitCode::succeeded;
}

}  // namespace attnjit
