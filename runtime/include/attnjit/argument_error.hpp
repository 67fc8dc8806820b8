// A call's arguments contradict its descriptor or each other: the launch-time twin of
// DescriptorError.
#pragma once

#include <stdexcept>
#include <utility>
#include <vector>

#include "attnjit/descriptor_validation.hpp"

namespace attnjit {

// what() lists every violation: argument, value, rule, fix.
class ArgumentError : public std::runtime_error {
 public:
  explicit ArgumentError(std::vector<Violation> violations);
  const std::vector<Violation>& violations() const { return violations_; }

 private:
  std::vector<Violation> violations_;
};

}  // namespace attnjit
