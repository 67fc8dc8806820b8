// What this version serves, operation by operation and kernel by kernel: asked of the rules and of
// the config selection about concrete calls, so that no list of it is written by hand. Stands
// beside the straight line (validate, select_configs); `attnjit caps` prints it. Pure functions,
// thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "attnjit/kernel_config.hpp"
#include "attnjit/target_device.hpp"

namespace attnjit {

// Who is asked; by default those that serve.
struct ServingRules {
  std::span<const DescriptorRule> legality = legality_rules();
  std::span<const DescriptorRule> support = support_rules();
  // Answers, or throws DescriptorError, for a call that breaks none of the rules.
  std::vector<KernelConfig> (*configs)(const AttentionDescriptor&,
                                       const TargetDevice&) = select_configs;
};

// A value that was asked about, and a call that has it on a target that answered.
struct ProbedValue {
  std::string value;  // "sliding_window", "bf16", "576/512"
  int position = 0;   // among the values that the axis was asked about
  AttentionDescriptor call;
  TargetDevice target;
};

struct ServedAxis {
  std::string axis;  // a field of the descriptor, or several that go together: "dtype q/kv"
  std::vector<ProbedValue> values;  // ascending positions
};

// What one kernel is taken for. All rows have the same axes in the same order; an axis is empty
// where no call of the operation has any of its values, page_size without pages for one.
struct ServedRow {
  Operation operation = Operation::decode;
  std::string kernel;                 // the template of the operation's first kernel
  std::vector<TargetDevice> targets;  // on which it is taken
  std::vector<ServedAxis> axes;
};

// A rule that refuses legal calls of an operation, and the values that it refuses. An operation
// without a row has all of its refusals here.
struct Refusal {
  Operation operation = Operation::decode;
  std::string field;
  std::vector<ProbedValue> values;  // of the field
  std::string rule;
  std::string fix;
};

struct SupportMatrix {
  std::vector<TargetDevice> targets;
  std::vector<ServedRow> rows;    // in the order of the operations
  std::vector<Refusal> refusals;  // likewise
};

// Asks about every value of every axis in turn, each in the nearest call to a typical one that
// breaks fewest rules. Of values that are served, about dtypes with layouts with masks and head
// dimensions with masks in all combinations. Which calls an operation takes is found out, not known
// here.
SupportMatrix make_support_matrix(std::span<const TargetDevice> targets,
                                  const ServingRules& rules = {});

}  // namespace attnjit
