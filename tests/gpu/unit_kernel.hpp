// The unit kernels of tests/gpu/sm90, compiled by the provider of gpu_runtime() and run on device
// 0. One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/device_memory.hpp"
#include "attnjit/kernel_launch.hpp"
#include "sm90/unit_arguments.h"
#include "tensor_map.hpp"

namespace attnjit::sm90 {

// False, with the reason as a warning of the running test, where device 0 cannot run them.
bool has_sm90();

// Dynamic shared memory of every unit kernel that copies tiles, bytes.
constexpr int unit_shared_bytes = 208 * 1024;

class UnitKernel {
 public:
  // `unit_case` is the text of the unit_case.cuh that the kernel includes, if it does.
  UnitKernel(std::string_view entry, int num_threads, int shared_bytes,
             std::string_view unit_case = "");

  // Queues a launch of `blocks` blocks.
  void launch(unsigned blocks, const void* arguments, const DeviceStream& stream,
              LaunchOrder order = LaunchOrder::after_previous) const;

 private:
  std::unique_ptr<LoadedCubin> cubin_;
  LoadedKernel kernel_;
};

// Encoded by this process's driver.
TensorMap encode(const TensorMapShape& shape, const DeviceBuffer& tensor);

// The map of a matrix of contiguous rows, copied in boxes of box_columns x box_rows.
TensorMap encode_matrix(DataType dtype, int rows, int columns, int box_rows, int box_columns,
                        Swizzle swizzle, const DeviceBuffer& matrix);

template <typename Value>
DeviceBuffer upload(const std::vector<Value>& values, const DeviceStream& stream) {
  return make_device_buffer(0, std::span<const Value>(values), stream.handle());
}

}  // namespace attnjit::sm90
