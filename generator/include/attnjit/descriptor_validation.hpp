// The rules of a descriptor, in one place: what no kernel could mean (violations) and what is
// meaningful but served by no kernel yet (refusals). All of them are listed, never only the first.
// Pure functions, thread-safe.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "attnjit/attention_descriptor.hpp"

namespace attnjit {

struct Violation {
  std::string field;  // the descriptor's field, e.g. "head_dim_qk"
  std::string value;  // what was given
  std::string rule;   // what is allowed
  std::string fix;    // what to do
};

// "head_dim_qk = 100: must be a multiple of 8 up to 256 …; fix: pad the heads …"
std::string to_string(const Violation& violation);

// Thrown for a descriptor that is malformed (JSON), illegal or unsupported; what() lists
// everything.
class DescriptorError : public std::runtime_error {
 public:
  explicit DescriptorError(std::vector<Violation> violations);
  const std::vector<Violation>& violations() const { return violations_; }

 private:
  std::vector<Violation> violations_;
};

// Contradictions and values out of range. Empty = the descriptor means something.
std::vector<Violation> find_violations(const AttentionDescriptor& descriptor);

// Axes of a legal descriptor that no kernel of this version serves, each refused by name.
std::vector<Violation> find_refusals(const AttentionDescriptor& descriptor);

// Throws DescriptorError listing all violations, or, if there are none, all refusals.
void validate(const AttentionDescriptor& descriptor);

}  // namespace attnjit
