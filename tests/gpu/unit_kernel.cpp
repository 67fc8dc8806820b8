#include "unit_kernel.hpp"

#include <array>

#include <fmt/format.h>

#include "attnjit/embedded_file.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "attnjit/target_device_query.hpp"
#include "catch.hpp"
#include "driver.hpp"
#include "gpu_runtime.hpp"

namespace attnjit {

extern const std::span<const EmbeddedFile> embedded_sm90_unit_sources;

namespace sm90 {

bool has_sm90() {
  const TargetDevice target = query_target_device(0);
  if (target.compute_capability != 90) {
    WARN("skipped: needs compute capability 9.0, " << target.name << " has "
                                                   << target.compute_capability / 10 << "."
                                                   << target.compute_capability % 10);
  }
  return target.compute_capability == 90;
}

UnitKernel::UnitKernel(std::string_view entry, int num_threads, int shared_bytes,
                       std::string_view unit_case) {
  KernelProvider& provider = gpu_runtime().provider();
  const std::array<EmbeddedFile, 1> case_file = {{{"unit_case.cuh", unit_case}}};
  const TemplateLibrary library =
      provider.templates().extended(embedded_sm90_unit_sources).extended(case_file);
  RenderedKernel kernel = render_source(entry, library.text(fmt::format("{}.cu", entry)),
                                        query_target_device(0), library);
  kernel.num_threads = num_threads;
  kernel.shared_memory_bytes = shared_bytes;
  const ProvidedKernel provided = provider.provide(kernel);
  cubin_ = std::make_unique<LoadedCubin>(
      provided.cubin, KernelShape{std::string(entry), num_threads, shared_bytes});
  kernel_ = cubin_->on_device(0);
}

void UnitKernel::launch(unsigned blocks, const void* arguments, const DeviceStream& stream,
                        LaunchOrder order) const {
  attnjit::launch(kernel_, LaunchGrid{.x = blocks}, stream.handle(), arguments, order);
}

TensorMap encode(const TensorMapShape& shape, const DeviceBuffer& tensor) {
  const Driver& driver = Driver::instance();
  const ScopedContext context(driver, driver.primary_context(0));  // encoding needs one
  return encode_tensor_map(driver, "tensor", shape, tensor.data());
}

TensorMap encode_matrix(DataType dtype, int rows, int columns, int box_rows, int box_columns,
                        Swizzle swizzle, const DeviceBuffer& matrix) {
  TensorMapShape shape;
  shape.dtype = dtype;
  shape.rank = 2;
  shape.extents = {columns, rows};
  shape.strides_bytes = {std::int64_t{columns} * size_bytes(dtype)};
  shape.box = {box_columns, box_rows};
  shape.swizzle = swizzle;
  return encode(shape, matrix);
}

}  // namespace sm90
}  // namespace attnjit
