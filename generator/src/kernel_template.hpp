// The template file behind each kind of KernelConfig and the shape of its thread block. Private;
// thread-safe.
#pragma once

#include <string_view>

#include "attnjit/kernel_config.hpp"

namespace attnjit {

struct KernelTemplate {
  std::string_view name;  // kernels/<name>.cu, and the extern "C" entry point
  KernelRole role;
  int num_threads;          // per block
  int shared_memory_bytes;  // dynamic, per block
};

KernelTemplate template_of(const KernelConfig& config);

}  // namespace attnjit
