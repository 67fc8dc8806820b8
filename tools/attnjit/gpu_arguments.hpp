// The arguments that every command on a GPU takes: which GPU, which cache, which compiler.
#pragma once

#include <string>

#include "attnjit/kernel_provider.hpp"

namespace CLI {
class App;
}

namespace attnjit {

struct GpuArguments {
  int device = 0;  // CUDA ordinal
  std::string cache_directory;
  std::string nvrtc;
  std::string templates;
};

// Declares them on `command`; `arguments` must outlive the parse.
void add_gpu_arguments(CLI::App& command, GpuArguments& arguments);

KernelProviderOptions provider_options(const GpuArguments& arguments);

}  // namespace attnjit
