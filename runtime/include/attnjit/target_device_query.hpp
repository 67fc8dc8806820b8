// A GPU of this machine -> TargetDevice: the same data that a preset holds, read from the driver.
// Thread-safe.
#pragma once

#include "attnjit/target_device.hpp"

namespace attnjit {

class Driver;

// GPUs the driver shows to this process. Throws DriverError if there is no usable driver.
int count_devices();

// The GPU with that CUDA ordinal; `name` is the driver's. Throws DriverError, or CudaError if there
// is no such device.
TargetDevice query_target_device(int ordinal);
TargetDevice query_target_device(const Driver& driver, int ordinal);

}  // namespace attnjit
