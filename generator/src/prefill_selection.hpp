// The config of kernels/prefill_sm80.cu for a descriptor. Pure.
#pragma once

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/kernel_config.hpp"
#include "attnjit/target_device.hpp"

namespace attnjit {

// `descriptor` is valid, of operation prefill or prefill_kvcache. Throws DescriptorError if no tile
// fits in the shared memory of `device`.
PrefillConfig select_prefill(const AttentionDescriptor& descriptor, const TargetDevice& device);

// What merges the parts of a call that is split.
CombinePrefillConfig combine_for(const PrefillConfig& prefill);

}  // namespace attnjit
