// Whether a refusal tells what is wrong. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "attnjit/descriptor_validation.hpp"

namespace attnjit::check {

// Why `violations` do not tell what is wrong about one of `fields`; empty if they do: one of them
// names one of these, and each says what is allowed and the fix.
std::string find_fault(const std::vector<Violation>& violations,
                       const std::vector<std::string>& fields);

}  // namespace attnjit::check
