#include "attnjit/kernel_launch.hpp"

#include "driver.hpp"

#include <fmt/format.h>

namespace attnjit {
namespace {

CUlaunchAttribute overlap_attribute() {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  return attribute;
}

// A null stream means the one of the current context, and a thread may have none.
CUresult launch_in_primary_context(const LoadedKernel& kernel, const CUlaunchConfig& config,
                                   CUfunction function, void** parameters) {
  const ScopedContext current(*kernel.driver, kernel.driver->primary_context(kernel.device));
  return kernel.driver->api().launch_kernel_ex(&config, function, parameters, nullptr);
}

[[noreturn]] void fail(const LoadedKernel& kernel, const CUlaunchConfig& config, CUresult result) {
  kernel.driver->fail(
      result,
      fmt::format("cuLaunchKernelEx of kernel {} on device {} (grid {}x{}x{}, {} threads, {} bytes "
                  "of shared memory)",
                  kernel.entry, kernel.device, config.gridDimX, config.gridDimY, config.gridDimZ,
                  config.blockDimX, config.sharedMemBytes));
}

}  // namespace

void launch(const LoadedKernel& kernel, LaunchGrid grid, CUstream_st* stream, const void* arguments,
            LaunchOrder order) {
  CUlaunchAttribute attribute = overlap_attribute();
  CUlaunchConfig config{};
  config.gridDimX = grid.x;
  config.gridDimY = grid.y;
  config.gridDimZ = grid.z;
  config.blockDimX = kernel.num_threads;
  config.blockDimY = 1;
  config.blockDimZ = 1;
  config.sharedMemBytes = kernel.shared_memory_bytes;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = order == LaunchOrder::overlapping_previous ? 1 : 0;
  // The driver takes a CUkernel for a CUfunction, and the context from the stream.
  auto* const function = reinterpret_cast<CUfunction>(kernel.kernel);
  void* parameters[] = {const_cast<void*>(arguments)};  // only read
  CUresult result = kernel.driver->api().launch_kernel_ex(&config, function, parameters, nullptr);
  if (result == CUDA_ERROR_INVALID_CONTEXT && stream == nullptr) {
    result = launch_in_primary_context(kernel, config, function, parameters);
  }
  if (result != CUDA_SUCCESS) {
    fail(kernel, config, result);
  }
}

}  // namespace attnjit
