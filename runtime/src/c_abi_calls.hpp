// What the calls of the C interface have in common. Private to the c_abi files; pure.
#pragma once

#include "attnjit/attention_descriptor.hpp"

namespace attnjit::c_abi {

// The scale that a call gives; for 0, 1 / sqrt(head_dim_qk).
float scale_or_default(float scale, const AttentionDescriptor& descriptor);

}  // namespace attnjit::c_abi
