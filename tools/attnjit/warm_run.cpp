#include "warm_run.hpp"

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "attnjit/cache_options.hpp"
#include "attnjit/disk_cache.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "attnjit/template_library.hpp"
#include "worker_pool.hpp"

namespace attnjit {
namespace {

// Then nothing needs to be looked for, and workers begin before NVRTC is opened here, of which keys
// are made: 0.03 s of every cold start.
bool holds_nothing(const WarmSettings& settings) {
  const KernelProviderOptions& options = settings.provider;
  const DiskCache cache(resolve_cache_options({.directory = options.cache_directory,
                                               .layers = options.cache_layers,
                                               .sharing = options.cache_sharing,
                                               .max_bytes = options.cache_max_bytes},
                                              [](std::string_view) {}),
                        [](std::string_view) {});  // workers tell what is wrong with it
  return cache.layers().empty() && cache.list().empty();
}

// The jobs' kernels; none of one that cannot be rendered, which has failed with that: its config
// may have been read from a file.
std::vector<std::optional<RenderedKernel>> render_all(std::span<const KernelJob> jobs,
                                                      const WarmSettings& settings, WarmRun& run) {
  const TemplateLibrary library = TemplateLibrary::open(settings.provider.templates);
  std::vector<std::optional<RenderedKernel>> kernels(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    try {
      kernels[i] = render(jobs[i].config, jobs[i].target, library);
    } catch (const std::invalid_argument& error) {
      run.kernels[i] = failed_kernel(WarmState::compile_failed, error.what());
      settings.on_end(i, run.kernels[i]);
    }
  }
  return kernels;
}

// Where every kernel that is there already is found without a worker: seconds matter to whoever
// warms again at every start.
void find_cached(std::span<const std::optional<RenderedKernel>> kernels,
                 const WarmSettings& settings, WarmRun& run) {
  KernelProviderOptions options = settings.provider;
  options.miss_trace = std::filesystem::path();
  options.warn = settings.on_notice;
  KernelProvider provider(options);
  for (std::size_t i = 0; i < kernels.size() && settings.stop() == StopRequest::none; ++i) {
    if (!kernels[i] || !provider.look_up(*kernels[i]).provided) {
      continue;
    }
    ProvidedKernel found = provider.provide(*kernels[i]);  // looks after what belongs to the entry
    run.kernels[i] = {.state = WarmState::cached,
                      .key = std::move(found.key.digest),
                      .metadata = std::move(found.metadata),
                      .cubin_bytes = found.cubin.size(),
                      .miss = std::nullopt,
                      .problem = ""};
    settings.on_end(i, run.kernels[i]);
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
  const auto kernels = render_all(jobs, settings, run);
  if (settings.recompile == Recompile::missing && !holds_nothing(settings)) {
    find_cached(kernels, settings, run);
  }
  WorkerPool(jobs, settings, run).work();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  run.seconds = elapsed.count();
  return run;
}

}  // namespace attnjit
