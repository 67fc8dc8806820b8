// The config of kernels/sparse_mla_sm80.cu for a descriptor. Pure.
#pragma once

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/kernel_config.hpp"
#include "attnjit/target_device.hpp"

namespace attnjit {

// `descriptor` is valid, of operation sparse_mla_decode or sparse_mla_prefill. Throws
// DescriptorError if no tile fits in the shared memory of `device`.
SparseMlaConfig select_sparse_mla(const AttentionDescriptor& descriptor,
                                  const TargetDevice& device);

}  // namespace attnjit
