#include "attnjit/argument_error.hpp"

#include <span>

namespace attnjit {

ArgumentError::ArgumentError(std::vector<Violation> violations)
    : std::runtime_error(to_string(std::span<const Violation>(violations))),
      violations_(std::move(violations)) {}

}  // namespace attnjit
