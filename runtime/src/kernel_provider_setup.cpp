// Construction of a KernelProvider: opening what it works on.
#include "attnjit/nvrtc_compiler.hpp"
#include "kernel_provider_state.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace attnjit {
namespace {

void warn_on_stderr(std::string_view warning) {
  std::fprintf(stderr, "attnjit: %.*s\n", static_cast<int>(warning.size()), warning.data());
}

DiskCache::WarningHandler warning_handler(const KernelProviderOptions& options) {
  return options.warn ? options.warn : warn_on_stderr;
}

DiskCache open_cache(const KernelProviderOptions& options) {
  const DiskCache::WarningHandler warn = warning_handler(options);
  return DiskCache(resolve_cache_options({.directory = options.cache_directory,
                                          .layers = options.cache_layers,
                                          .sharing = options.cache_sharing,
                                          .max_bytes = options.cache_max_bytes},
                                         warn),
                   warn);
}

std::filesystem::path trace_file(const std::optional<std::filesystem::path>& option) {
  const char* named = std::getenv("ATTNJIT_MISS_TRACE");
  return option.value_or(named != nullptr ? named : "");
}

}  // namespace

KernelProvider::KernelProvider(const KernelProviderOptions& options)
    : KernelProvider(options, nullptr) {
  if (options.jit == JitPolicy::forbidden) {
    return;
  }
  try {
    state_->compiler = std::make_shared<NvrtcCompiler>(options.nvrtc);
  } catch (const ToolchainError& error) {
    state_->compiler_problem = error.what();
  }
}

KernelProvider::KernelProvider(KernelProviderOptions options,
                               std::shared_ptr<const KernelCompiler> compiler)
    : state_(new State{
          .templates = TemplateLibrary::open(options.templates),
          .cache = open_cache(options),
          .compiler = options.jit == JitPolicy::allowed ? std::move(compiler) : nullptr,
          .compiler_problem = "none was given",
          .jit = options.jit,
          .on_miss = std::move(options.on_miss),
          .on_wait = options.on_wait ? std::move(options.on_wait) : warn_on_stderr,
          .trace{trace_file(options.miss_trace), warning_handler(options)},
          .flights = {},
          .failed_compiles = {},
      }) {}

KernelProvider::~KernelProvider() = default;

std::string KernelProvider::compiler_problem() const {
  return state_->compiler == nullptr ? state_->compiler_problem : "";
}

const DiskCache& KernelProvider::cache() const {
  return state_->cache;
}

const TemplateLibrary& KernelProvider::templates() const {
  return state_->templates;
}

}  // namespace attnjit
