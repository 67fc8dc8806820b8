// How a file operation ended. Private; plain value.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

namespace attnjit {

// error_number is an errno value, 0 on success; step says what was being done.
struct FileOutcome {
  int error_number = 0;
  std::string_view step;

  bool ok() const { return error_number == 0; }
  std::string message() const;  // "cannot <step>: <meaning of error_number>"
};

inline FileOutcome failed(std::string_view step) {
  return {.error_number = errno, .step = step};
}

}  // namespace attnjit
