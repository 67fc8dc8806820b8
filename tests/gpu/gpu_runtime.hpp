// What every GPU test stands on: one runtime on device 0 for the whole executable, so that kernels
// are compiled once.
#pragma once

#include "attnjit/attention_runtime.hpp"

namespace attnjit {

inline AttentionRuntime& gpu_runtime() {
  static AttentionRuntime runtime;
  return runtime;
}

}  // namespace attnjit
