// The attention kernels over a paged cache and what each needs of a descriptor and a device: the
// one place that says which of them serves a call. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/target_device.hpp"

namespace attnjit {

constexpr int box_columns = 64;  // of TMA and wgmma with the 128-byte swizzle

// What kernels/swapped_decode_sm90.cu and kernels/seesaw_decode_sm90.cu need and do not have, in
// words; empty if they serve the descriptor. kernels/paged_decode_sm80.cu serves all that is legal.
std::vector<std::string> unmet_by_swapped_decode(const AttentionDescriptor& descriptor,
                                                 const TargetDevice& device);
std::vector<std::string> unmet_by_seesaw_decode(const AttentionDescriptor& descriptor,
                                                const TargetDevice& device);

}  // namespace attnjit
