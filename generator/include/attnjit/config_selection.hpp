// validate -> select_configs -> KernelConfig: which kernels serve a descriptor on a device, and
// with which tile, stages and warps. Pure functions, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/kernel_config.hpp"
#include "attnjit/target_device.hpp"

namespace attnjit {

// The kernels an operation launches: attention, combine, schedule. Throws DescriptorError if the
// descriptor is illegal or unsupported, or if no tile fits the device's shared memory.
std::vector<KernelConfig> select_configs(const AttentionDescriptor& descriptor,
                                         const TargetDevice& device);

// An attention kernel, and what it needs that a descriptor or a device does not have.
struct KernelCandidate {
  std::string kernel;              // the template's name
  std::vector<std::string> unmet;  // conditions in words; empty if it serves the descriptor
};

// All of them in the order in which select_configs tries them: the first without unmet conditions
// is taken. Throws DescriptorError if the descriptor is illegal or unsupported.
std::vector<KernelCandidate> attention_candidates(const AttentionDescriptor& descriptor,
                                                  const TargetDevice& device);

}  // namespace attnjit
