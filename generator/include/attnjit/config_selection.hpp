// validate -> select_configs -> KernelConfig: which kernels serve a descriptor on a device, and
// with which tile, stages and warps. Pure functions, thread-safe.
#pragma once

#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/kernel_config.hpp"
#include "attnjit/target_device.hpp"

namespace attnjit {

// The kernels an operation launches: attention, combine, schedule. Throws DescriptorError if the
// descriptor is illegal or unsupported, or if no tile fits the device's shared memory.
std::vector<KernelConfig> select_configs(const AttentionDescriptor& descriptor,
                                         const TargetDevice& device);

}  // namespace attnjit
