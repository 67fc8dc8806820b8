#include "attnjit/kernel_launch.hpp"

#include "driver.hpp"

#include <array>

#include <fmt/format.h>

namespace attnjit {
namespace {

CUlaunchAttribute cluster_attribute(unsigned blocks) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = blocks;
  attribute.value.clusterDim.y = 1;
  attribute.value.clusterDim.z = 1;
  return attribute;
}

CUlaunchAttribute overlap_attribute() {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  return attribute;
}

// A null stream means the one of the current context, and a thread may have none.
CUresult launch_in_primary_context(const LoadedKernel& kernel, const CUlaunchConfig& config,
                                   CUfunction function, void** parameters) {
  const ScopedContext current(*kernel.driver, kernel.context);
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
  std::array<CUlaunchAttribute, 2> attributes{};
  unsigned num_attributes = 0;
  if (order == LaunchOrder::overlapping_previous) {
    attributes[num_attributes++] = overlap_attribute();
  }
  if (grid.cluster_x > 1) {
    attributes[num_attributes++] = cluster_attribute(grid.cluster_x);
  }
  CUlaunchConfig config{};
  config.gridDimX = grid.x;
  config.gridDimY = grid.y;
  config.gridDimZ = grid.z;
  config.blockDimX = kernel.num_threads;
  config.blockDimY = 1;
  config.blockDimZ = 1;
  config.sharedMemBytes = kernel.shared_memory_bytes;
  config.hStream = stream;
  config.attrs = attributes.data();
  config.numAttrs = num_attributes;
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
