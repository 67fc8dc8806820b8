#include "warm_run.hpp"

#include <chrono>
#include <utility>

#include "attnjit/kernel_renderer.hpp"

namespace attnjit {
namespace {

WarmedKernel failure(WarmState state, std::string problem) {
  WarmedKernel kernel;
  kernel.state = state;
  kernel.problem = std::move(problem);
  return kernel;
}

WarmedKernel run_job(KernelProvider& provider, const KernelJob& job, Recompile recompile) {
  const RenderedKernel kernel = render(job.config, job.target, provider.templates());
  try {
    ProvidedKernel provided =
        recompile == Recompile::all ? provider.recompile(kernel) : provider.provide(kernel);
    const bool compiled = recompile == Recompile::all || provided.miss.has_value();
    return {.state = compiled ? WarmState::compiled : WarmState::cached,
            .key = std::move(provided.key.digest),
            .metadata = std::move(provided.metadata),
            .cubin_bytes = provided.cubin.size(),
            .miss = provided.miss,
            .problem = ""};
  } catch (const CompileError& error) {
    return failure(WarmState::compile_failed, error.what());
  } catch (const ToolchainError& error) {
    return failure(WarmState::toolchain_failed, error.what());
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
    case WarmState::not_stored:
      return "not_stored";
    case WarmState::not_run:
      return "not_run";
  }
  return "";
}

WarmRun run_warm_jobs(std::span<const KernelJob> jobs, const WarmSettings& settings) {
  std::string cache_problem;
  KernelProviderOptions options = settings.provider;
  options.warn = [&](std::string_view warning) { cache_problem = warning; };
  KernelProvider provider(options);

  WarmRun run;
  run.kernels.resize(jobs.size());
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < jobs.size() && cache_problem.empty(); ++i) {
    if (settings.interrupted()) {
      run.interrupted = true;
      break;
    }
    settings.on_begin(jobs[i]);
    run.kernels[i] = run_job(provider, jobs[i], settings.recompile);
    if (!cache_problem.empty()) {
      run.kernels[i].state = WarmState::not_stored;
      run.kernels[i].problem = cache_problem;
    }
    settings.on_end(run.kernels[i]);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  run.seconds = elapsed.count();
  return run;
}

}  // namespace attnjit
