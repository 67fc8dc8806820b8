// The device code that checks and benchmarks stand on: random data, the fp64 reference, the
// comparison. Compiled through the same provider as everything else. Thread-safe once made.
#pragma once

#include <memory>
#include <vector>

#include "attnjit/kernel_provider.hpp"
#include "attnjit/loaded_kernel.hpp"

namespace attnjit::check {

struct CheckKernels {
  std::vector<std::unique_ptr<LoadedCubin>> cubins;  // own what the kernels point to
  LoadedKernel fill_random;
  LoadedKernel fill_cache;
  LoadedKernel reference_decode;
  LoadedKernel compare_decode;
};

constexpr int check_threads = 256;  // per block, of every check kernel

// Dynamic shared memory of reference_decode for the widest head, bytes.
constexpr int reference_shared_bytes = 16 * 576 * 8;

// Compiles or finds the kernels and loads them on a CUDA device. Throws as KernelProvider::provide
// and LoadedCubin do.
CheckKernels load_check_kernels(KernelProvider& provider, int device);

}  // namespace attnjit::check
