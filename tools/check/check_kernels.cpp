#include "check_kernels.hpp"

#include <span>
#include <string>

#include <fmt/format.h>

#include "attnjit/embedded_file.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "attnjit/target_device_query.hpp"

namespace attnjit {

extern const std::span<const EmbeddedFile> embedded_check_sources;

namespace check {
namespace {}  // namespace

CheckKernels load_check_kernels(KernelProvider& provider, int device) {
  const TemplateLibrary library = provider.templates().extended(embedded_check_sources);
  const TargetDevice target = query_target_device(device);
  CheckKernels kernels;
  const auto load = [&](const std::string& entry, int shared_memory_bytes) {
    RenderedKernel kernel =
        render_source(entry, library.text(fmt::format("device/{}.cu", entry)), target, library);
    kernel.num_threads = check_threads;
    kernel.shared_memory_bytes = shared_memory_bytes;
    const ProvidedKernel provided = provider.provide(kernel);
    kernels.cubins.push_back(std::make_unique<LoadedCubin>(
        provided.cubin, KernelShape{entry, check_threads, shared_memory_bytes}));
    return kernels.cubins.back()->on_device(device);
  };
  kernels.fill_random = load("fill_random", 0);
  kernels.fill_cache = load("fill_cache", 0);
  kernels.reference_decode = load("reference_decode", reference_shared_bytes);
  kernels.compare_decode = load("compare_decode", 0);
  return kernels;
}

}  // namespace check
}  // namespace attnjit
