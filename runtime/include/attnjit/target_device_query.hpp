// A GPU of this machine -> TargetDevice: the same data that a preset holds, read from the driver.
// Thread-safe.
#pragma once

#include "attnjit/target_device.hpp"

#include <filesystem>

namespace attnjit {

class Driver;

struct DriverDescription {
  int version = 0;             // of CUDA: 1000 * major + 10 * minor, e.g. 13000
  std::filesystem::path path;  // of libcuda
};

// The driver of this machine. Throws DriverError if there is no usable one.
DriverDescription describe_driver();

// GPUs the driver shows to this process. Throws DriverError if there is no usable driver.
int count_devices();

// The GPU with that CUDA ordinal; `name` is the driver's. Throws DriverError, or CudaError if there
// is no such device.
TargetDevice query_target_device(int ordinal);
TargetDevice query_target_device(const Driver& driver, int ordinal);

}  // namespace attnjit
