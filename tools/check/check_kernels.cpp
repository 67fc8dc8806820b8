#include "check_kernels.hpp"

#include <span>

#include <fmt/format.h>

#include "attnjit/embedded_file.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "attnjit/target_device_query.hpp"

namespace attnjit {

extern const std::span<const EmbeddedFile> embedded_check_sources;

namespace check {

RenderedKernel render_check_kernel(const TemplateLibrary& templates, const TargetDevice& target,
                                   CheckKernelSource source) {
  const TemplateLibrary library = templates.extended(embedded_check_sources);
  const std::string entry(source.entry);
  RenderedKernel kernel =
      render_source(entry, library.text(fmt::format("device/{}.cu", entry)), target, library);
  kernel.num_threads = check_threads;
  kernel.shared_memory_bytes = source.shared_memory_bytes;
  return kernel;
}

CheckKernels load_check_kernels(KernelProvider& provider, int device) {
  const TargetDevice target = query_target_device(device);
  CheckKernels kernels;
  for (const CheckKernelSource& source : check_kernel_sources) {
    const ProvidedKernel provided =
        provider.provide(render_check_kernel(provider.templates(), target, source));
    kernels.cubins.push_back(std::make_unique<LoadedCubin>(
        provided.cubin,
        KernelShape{std::string(source.entry), check_threads, source.shared_memory_bytes}));
    kernels.*source.place = kernels.cubins.back()->on_device(device);
  }
  return kernels;
}

}  // namespace check
}  // namespace attnjit
