// JSON text -> KernelConfig: what to_json(KernelConfig) wrote, read back, so that a config can
// cross a process or a file. Pure function, thread-safe.
#pragma once

#include <stdexcept>
#include <string_view>

#include "attnjit/kernel_config.hpp"

namespace attnjit {

// The text is not a config: the message names the field, its value, what is allowed and the fix.
class ConfigJsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reads a config whose every field is given: one that is missing was written by another version,
// for which no default is right. to_json of the result is the same text. Throws ConfigJsonError
// listing all that is wrong. Values are not checked beyond their types.
KernelConfig kernel_config_from_json(std::string_view json);

}  // namespace attnjit
