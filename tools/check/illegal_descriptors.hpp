// Random descriptors that must be refused. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "reference_comparison.hpp"

namespace attnjit::check {

// One that breaks a rule of what is legal or served.
struct IllegalDescriptor {
  AttentionDescriptor descriptor;
  std::vector<std::string> fields;  // that were changed in a legal one
};

// One or two things about a legal descriptor made wrong, deterministic in both arguments.
IllegalDescriptor make_illegal_descriptor(std::uint64_t seed, std::uint64_t index);

// "mask custom, page_size 257": the changed fields as they are now.
std::string describe(const IllegalDescriptor& illegal);

// Passed if validate refuses the descriptor and names one of the changed fields, with what is
// allowed and the fix.
CheckResult check_refusal(const IllegalDescriptor& illegal);

}  // namespace attnjit::check
