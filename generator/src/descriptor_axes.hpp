// The axes of an attention call and the values that the support matrix asks about on each: where to
// look, never what is served. Private; thread-safe.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/descriptor_validation.hpp"

namespace attnjit {

// Setting a value twice, or on a call that has it, changes nothing.
struct AxisValue {
  std::string name;
  std::function<void(AttentionDescriptor&)> set;
};

struct DescriptorAxis {
  std::string name;
  std::vector<AxisValue> values;
};

constexpr std::string_view dtypes_axis = "dtype q/kv";
constexpr std::string_view output_axis = "dtype_out";
constexpr std::string_view layout_axis = "kv_layout";
constexpr std::string_view mask_axis = "mask";
constexpr std::string_view head_dims_axis = "head_dim qk/v";

// Together they change every field but the operation. Element types are those that break no rule of
// `legality`.
std::vector<DescriptorAxis> descriptor_axes(std::span<const DescriptorRule> legality);

// Calls as models make them, which different kernels may serve: heads of 128, MLA's prefill, and
// its decode with one head, with all of them, and of many drafted tokens.
std::vector<AttentionDescriptor> typical_calls(Operation operation);

}  // namespace attnjit
