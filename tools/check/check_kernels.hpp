// The device code that checks and benchmarks stand on: random data, the fp64 reference, the
// comparison. Compiled through the same provider as everything else. Thread-safe once made.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "attnjit/kernel_provider.hpp"
#include "attnjit/loaded_kernel.hpp"
#include "attnjit/rendered_kernel.hpp"
#include "attnjit/target_device.hpp"
#include "attnjit/template_library.hpp"

namespace attnjit::check {

struct CheckKernels {
  std::vector<std::unique_ptr<LoadedCubin>> cubins;  // own what the kernels point to
  LoadedKernel fill_random;
  LoadedKernel fill_tokens;
  LoadedKernel reference_attention;
  LoadedKernel reference_sparse_mla;
  LoadedKernel compare_outputs;
};

constexpr int check_threads = 256;  // per block, of every check kernel

// Dynamic shared memory of reference_attention for the widest head, bytes.
constexpr int reference_shared_bytes = 16 * 576 * 8;

// One of device/*.cu.
struct CheckKernelSource {
  std::string_view entry;
  LoadedKernel CheckKernels::*place;
  int shared_memory_bytes;  // dynamic
};

constexpr std::array<CheckKernelSource, 5> check_kernel_sources = {
    {{"fill_random", &CheckKernels::fill_random, 0},
     {"fill_tokens", &CheckKernels::fill_tokens, 0},
     {"reference_attention", &CheckKernels::reference_attention, reference_shared_bytes},
     {"reference_sparse_mla", &CheckKernels::reference_sparse_mla, 0},
     {"compare_outputs", &CheckKernels::compare_outputs, 0}}};

// What the compiler gets for `source`, for `target`.
RenderedKernel render_check_kernel(const TemplateLibrary& templates, const TargetDevice& target,
                                   CheckKernelSource source);

// Compiles or finds the kernels and loads them on a CUDA device. Throws as KernelProvider::provide
// and LoadedCubin do.
CheckKernels load_check_kernels(KernelProvider& provider, int device);

}  // namespace attnjit::check
