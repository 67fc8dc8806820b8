// The rules of a descriptor, in one place: what no kernel could mean (legality) and what is
// meaningful but served by no kernel of this version (support). All broken rules are listed, never
// only the first. Pure functions, thread-safe.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/attention_descriptor.hpp"

namespace attnjit {

struct Violation {
  std::string field;  // the descriptor's field, e.g. "head_dim_qk"
  std::string value;  // what was given
  std::string rule;   // what is allowed
  std::string fix;    // what to do
};

// "head_dim_qk = 100: must be a multiple of 8 …; fix: pad the heads …"
std::string to_string(const Violation& violation);

// One line per violation.
std::string to_string(std::span<const Violation> violations);

// Thrown for a descriptor that is malformed (JSON), illegal or unsupported; what() lists
// everything.
class DescriptorError : public std::runtime_error {
 public:
  explicit DescriptorError(std::vector<Violation> violations);
  const std::vector<Violation>& violations() const { return violations_; }

 private:
  std::vector<Violation> violations_;
};

// One rule about one field. The rules are data, so that documentation and tests can walk them.
struct DescriptorRule {
  std::string_view field;
  std::string_view rule;
  std::string_view fix;
  bool (*is_broken)(const AttentionDescriptor&);
  // Of a field that holds text: what of it breaks the rule, and where. Null: the rule says it all.
  std::string (*find_fault)(const AttentionDescriptor&) = nullptr;
};

// Contradictions and values out of range.
std::span<const DescriptorRule> legality_rules();

// Axes of a legal descriptor that no kernel of this version serves, each refused by name.
std::span<const DescriptorRule> support_rules();

// The fields whose value no enumerator names (only a cast makes one), then the rules that
// `descriptor` breaks, in order.
std::vector<Violation> find_violations(const AttentionDescriptor& descriptor,
                                       std::span<const DescriptorRule> rules);

// Throws DescriptorError unless the descriptor's operation is `wanted`.
void require_operation(const AttentionDescriptor& descriptor, Operation wanted);

// Throws DescriptorError listing all broken legality rules or, if there are none, all broken
// support rules.
void validate(const AttentionDescriptor& descriptor);

}  // namespace attnjit
