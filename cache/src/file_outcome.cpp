#include "file_outcome.hpp"

#include <system_error>

namespace attnjit {

std::string FileOutcome::message() const {
  return "cannot " + std::string(step) + ": " +
         std::error_code(error_number, std::generic_category()).message();
}

}  // namespace attnjit
