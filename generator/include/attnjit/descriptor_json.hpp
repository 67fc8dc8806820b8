// AttentionDescriptor and KernelConfig as JSON text, both ways. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "attnjit/attention_descriptor.hpp"

namespace attnjit {

// One line of JSON holding every field, in declaration order.
std::string to_json(const AttentionDescriptor& descriptor);

// Reads a descriptor; absent fields keep their defaults. Throws DescriptorError naming each unknown
// field, wrong type or unknown enumerator, with what is allowed. Does not validate the values.
AttentionDescriptor descriptor_from_json(std::string_view json);

}  // namespace attnjit
