#include "warm_run.hpp"

#include <stdexcept>
#include <utility>

#include "attnjit/kernel_renderer.hpp"
#include "worker_pool.hpp"

namespace attnjit {
namespace {

// Where every kernel that is there already is found without a worker: seconds matter to whoever
// warms again at every start.
void find_cached(std::span<const KernelJob> jobs, const WarmSettings& settings, WarmRun& run) {
  KernelProviderOptions options = settings.provider;
  options.miss_trace = std::filesystem::path();
  options.warn = settings.on_notice;
  KernelProvider provider(options);
  for (std::size_t i = 0; i < jobs.size() && settings.stop() == StopRequest::none; ++i) {
    try {
      const RenderedKernel kernel = render(jobs[i].config, jobs[i].target, provider.templates());
      if (settings.recompile == Recompile::all) {
        continue;
      }
      if (provider.look_up(kernel).provided) {
        ProvidedKernel found = provider.provide(kernel);  // looks after what belongs to the entry
        run.kernels[i] = {.state = WarmState::cached,
                          .key = std::move(found.key.digest),
                          .metadata = std::move(found.metadata),
                          .cubin_bytes = found.cubin.size(),
                          .miss = std::nullopt,
                          .problem = ""};
      }
    } catch (const std::invalid_argument& error) {  // of a config that was read from a file
      run.kernels[i] = failed_kernel(WarmState::compile_failed, error.what());
    }
    if (run.kernels[i].state != WarmState::not_run) {
      settings.on_end(i, run.kernels[i]);
    }
  }
}

}  // namespace

std::string_view to_string(WarmState state) {
  switch (state) {
    case WarmState::compiled:
      return "compiled";
    case WarmState::cached:
      return "cached";
    case WarmState::compile_failed:
      return "compile_failed";
    case WarmState::toolchain_failed:
      return "toolchain_failed";
    case WarmState::crashed:
      return "crashed";
    case WarmState::timed_out:
      return "timed_out";
    case WarmState::out_of_memory:
      return "out_of_memory";
    case WarmState::not_stored:
      return "not_stored";
    case WarmState::not_run:
      return "not_run";
  }
  return "";
}

WarmedKernel failed_kernel(WarmState state, std::string problem) {
  WarmedKernel kernel;
  kernel.state = state;
  kernel.problem = std::move(problem);
  return kernel;
}

WarmRun run_warm_jobs(std::span<const KernelJob> jobs, const WarmSettings& settings) {
  WarmRun run;
  run.kernels.resize(jobs.size());
  const auto start = std::chrono::steady_clock::now();
  find_cached(jobs, settings, run);
  WorkerPool(jobs, settings, run).work();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  run.seconds = elapsed.count();
  return run;
}

}  // namespace attnjit
