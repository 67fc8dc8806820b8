// The output of the renderer and the input of the compiler: every byte that NVRTC will see, and
// what a launch must agree with. Immutable once made; a plain value.
#pragma once

#include <string>
#include <vector>

namespace attnjit {

struct SourceFile {
  std::string name;  // as it is included, e.g. "device/mma_sm80.cuh"
  std::string text;
};

struct RenderedKernel {
  std::string name;                 // template name, e.g. "paged_decode_sm80"
  std::string entry;                // extern "C" entry point
  std::string arch;                 // e.g. "sm_90a"
  std::string source;               // the translation unit, banner first
  std::vector<SourceFile> headers;  // everything it includes, kernel_config.cuh among them
  std::string config;               // the KernelConfig as one line of JSON
  int num_threads = 0;              // per block
  int shared_memory_bytes = 0;      // dynamic, per block
};

}  // namespace attnjit
