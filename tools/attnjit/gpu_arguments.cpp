#include "gpu_arguments.hpp"

#include <CLI/CLI.hpp>

namespace attnjit {

void add_gpu_arguments(CLI::App& command, GpuArguments& arguments) {
  command.add_option("--device", arguments.device, "CUDA ordinal of the GPU")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--cache-dir", arguments.cache_directory, "Kernel cache to use");
  command.add_option("--nvrtc", arguments.nvrtc, "libnvrtc, or its directory");
  command.add_option("--templates", arguments.templates, "Read templates from this directory");
}

KernelProviderOptions provider_options(const GpuArguments& arguments) {
  KernelProviderOptions options;
  options.cache_directory = arguments.cache_directory;
  options.nvrtc = arguments.nvrtc;
  options.templates = arguments.templates;
  return options;
}

}  // namespace attnjit
