#include "attnjit/descriptor_validation.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/mask_formula.hpp"
#include "attnjit/shown_text.hpp"
#include "enum_names.hpp"

namespace attnjit {
namespace {

std::string value_of(const AttentionDescriptor& descriptor, std::string_view field) {
  std::string value;
  for_each_field(descriptor, [&](std::string_view name, const auto& member) {
    if (name == field) {
      using Member = std::decay_t<decltype(member)>;
      if constexpr (std::is_enum_v<Member>) {
        value = to_string(member).empty() ? fmt::format("{}", static_cast<int>(member))
                                          : std::string(to_string(member));
      } else if constexpr (std::is_same_v<Member, std::string>) {
        value = fmt::format("\"{}\"", shown_text(member));
      } else {
        value = fmt::format("{}", member);
      }
    }
  });
  return value;
}

// C++ lets any integer be cast to an enumeration.
std::vector<Violation> find_unnamed_values(const AttentionDescriptor& descriptor) {
  std::vector<Violation> violations;
  for_each_field(descriptor, [&](const char* name, const auto& member) {
    using Member = std::decay_t<decltype(member)>;
    if constexpr (std::is_enum_v<Member>) {
      if (to_string(member).empty()) {
        violations.push_back({name, value_of(descriptor, name),
                              fmt::format("must be one of its enumerators, {}",
                                          fmt::join(enumerator_names<Member>(), ", ")),
                              "use one of these"});
      }
    }
  });
  return violations;
}

// The descriptor as it might be meant where its masks cannot be told, for a formula that cannot be
// read or a cast that named none: with each mask in their place. None where they can be told.
std::vector<AttentionDescriptor> possible_readings(const AttentionDescriptor& descriptor) {
  const bool is_named = !to_string(descriptor.mask).empty();
  if (is_named && !mask_formula_of(descriptor).clauses.empty()) {
    return {};
  }
  std::vector<AttentionDescriptor> readings;
  for (const std::string_view name : enumerator_names<MaskKind>()) {
    AttentionDescriptor& reading = readings.emplace_back(descriptor);
    if (is_named) {
      reading.mask_formula = name;
    } else {
      reading.mask = parse_enumerator<MaskKind>(name).value();
    }
  }
  return readings;
}

// What only one reading breaks is no fault of the descriptor: the masks are, and are told.
bool breaks(const DescriptorRule& rule, const AttentionDescriptor& descriptor,
            const std::vector<AttentionDescriptor>& readings) {
  return rule.is_broken(descriptor) &&
         (rule.find_fault != nullptr ||
          std::all_of(readings.begin(), readings.end(), rule.is_broken));
}

}  // namespace

std::string to_string(const Violation& violation) {
  const std::string subject = violation.value.empty()
                                  ? violation.field
                                  : fmt::format("{} = {}", violation.field, violation.value);
  return fmt::format("{}: {}; fix: {}", subject, violation.rule, violation.fix);
}

std::string to_string(std::span<const Violation> violations) {
  std::string text;
  for (const Violation& violation : violations) {
    text += text.empty() ? "" : "\n";
    text += to_string(violation);
  }
  return text;
}

DescriptorError::DescriptorError(std::vector<Violation> violations)
    : std::runtime_error(to_string(std::span<const Violation>(violations))),
      violations_(std::move(violations)) {}

std::vector<Violation> find_violations(const AttentionDescriptor& descriptor,
                                       std::span<const DescriptorRule> rules) {
  std::vector<Violation> violations = find_unnamed_values(descriptor);
  const std::vector<AttentionDescriptor> readings = possible_readings(descriptor);
  for (const DescriptorRule& rule : rules) {
    if (breaks(rule, descriptor, readings)) {
      const std::string fault =
          rule.find_fault != nullptr ? fmt::format(" ({})", rule.find_fault(descriptor)) : "";
      violations.push_back({std::string(rule.field), value_of(descriptor, rule.field),
                            std::string(rule.rule) + fault, std::string(rule.fix)});
    }
  }
  return violations;
}

void require_operation(const AttentionDescriptor& descriptor, Operation wanted) {
  if (descriptor.operation != wanted) {
    throw DescriptorError(
        {{"operation", value_of(descriptor, "operation"),
          fmt::format("must be {} here", to_string(wanted)),
          fmt::format("pass a descriptor of operation {}, or call what serves this one",
                      to_string(wanted))}});
  }
}

void validate(const AttentionDescriptor& descriptor) {
  for (const auto rules : {legality_rules(), support_rules()}) {
    std::vector<Violation> violations = find_violations(descriptor, rules);
    if (!violations.empty()) {
      throw DescriptorError(std::move(violations));
    }
  }
}

}  // namespace attnjit
