#include "attnjit/support_matrix.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <string_view>

#include "descriptor_axes.hpp"
#include "enum_names.hpp"

namespace attnjit {
namespace {

using Axes = std::vector<DescriptorAxis>;
using Pins = std::vector<const AxisValue*>;  // values that a call must have

// How far a call is from being served: contradictions first, then what nothing serves.
struct BrokenRules {
  std::ptrdiff_t legality = 0;
  std::ptrdiff_t support = 0;

  friend auto operator<=>(const BrokenRules&, const BrokenRules&) = default;
};

std::ptrdiff_t count_broken(std::span<const DescriptorRule> rules,
                            const AttentionDescriptor& call) {
  return std::count_if(rules.begin(), rules.end(),
                       [&](const DescriptorRule& rule) { return rule.is_broken(call); });
}

BrokenRules broken_rules(const ServingRules& rules, const AttentionDescriptor& call) {
  return {count_broken(rules.legality, call), count_broken(rules.support, call)};
}

AttentionDescriptor with(AttentionDescriptor call, const AxisValue& value, const Pins& pins) {
  value.set(call);
  for (const AxisValue* pin : pins) {
    pin->set(call);
  }
  return call;
}

// `call` with `pins`, then changed one value at a time, each time the one that mends most, until
// nothing is broken or no single change helps. So a page size finds its paged layout, and scales
// their fp8 type.
AttentionDescriptor mended(AttentionDescriptor call, const Pins& pins, const Axes& axes,
                           const ServingRules& rules) {
  for (const AxisValue* pin : pins) {
    pin->set(call);
  }
  BrokenRules broken = broken_rules(rules, call);
  for (bool improves = true; improves && broken != BrokenRules{};) {
    improves = false;
    const AttentionDescriptor start = call;
    for (const DescriptorAxis& axis : axes) {
      for (const AxisValue& value : axis.values) {
        const AttentionDescriptor candidate = with(start, value, pins);
        const BrokenRules left = broken_rules(rules, candidate);
        if (left < broken) {
          call = candidate;
          broken = left;
          improves = true;
        }
      }
    }
  }
  return call;
}

bool has_value(const AttentionDescriptor& call, const AxisValue& value) {
  AttentionDescriptor same = call;
  value.set(same);
  return same == call;
}

ServedRow& row_of(Operation operation, std::string_view kernel, const Axes& axes,
                  SupportMatrix& matrix) {
  const auto found = std::find_if(
      matrix.rows.begin(), matrix.rows.end(),
      [&](const ServedRow& row) { return row.operation == operation && row.kernel == kernel; });
  if (found != matrix.rows.end()) {
    return *found;
  }
  ServedRow row{operation, std::string(kernel), {}, {}};
  for (const DescriptorAxis& axis : axes) {
    row.axes.push_back({axis.name, {}});
  }
  return matrix.rows.emplace_back(std::move(row));
}

void add_value(ServedAxis& served, ProbedValue probed) {
  const auto place = std::lower_bound(
      served.values.begin(), served.values.end(), probed.position,
      [](const ProbedValue& each, int position) { return each.position < position; });
  if (place == served.values.end() || place->position != probed.position) {
    served.values.insert(place, std::move(probed));
  }
}

void add_served(const AttentionDescriptor& call, const TargetDevice& target,
                std::string_view kernel, const Axes& axes, SupportMatrix& matrix) {
  ServedRow& row = row_of(call.operation, kernel, axes, matrix);
  const auto is_target = [&](const TargetDevice& each) {
    return each.name == target.name && each.arch == target.arch;
  };
  if (std::none_of(row.targets.begin(), row.targets.end(), is_target)) {
    row.targets.push_back(target);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    for (std::size_t j = 0; j < axes[i].values.size(); ++j) {
      if (has_value(call, axes[i].values[j])) {
        add_value(row.axes[i], {axes[i].values[j].name, static_cast<int>(j), call, target});
      }
    }
  }
}

void add_refused(const AttentionDescriptor& call, const TargetDevice& target,
                 const std::vector<Violation>& violations, SupportMatrix& matrix) {
  for (const Violation& violation : violations) {
    auto refusal =
        std::find_if(matrix.refusals.begin(), matrix.refusals.end(), [&](const Refusal& each) {
          return each.operation == call.operation && each.field == violation.field &&
                 each.rule == violation.rule;
        });
    if (refusal == matrix.refusals.end()) {
      matrix.refusals.push_back(
          {call.operation, violation.field, {}, violation.rule, violation.fix});
      refusal = matrix.refusals.end() - 1;
    }
    std::vector<ProbedValue>& values = refusal->values;
    if (std::none_of(values.begin(), values.end(),
                     [&](const ProbedValue& each) { return each.value == violation.value; })) {
      values.push_back({violation.value, static_cast<int>(values.size()), call, target});
    }
  }
}

// What refuses `call` wherever it runs, in the order of validate.
std::vector<Violation> refusals_of(const AttentionDescriptor& call, const ServingRules& rules) {
  std::vector<Violation> violations = find_violations(call, rules.legality);
  return violations.empty() ? find_violations(call, rules.support) : violations;
}

// Asks about `call` on every target, and says whether one of them serves it.
bool probe(const AttentionDescriptor& call, const Axes& axes, const ServingRules& rules,
           SupportMatrix& matrix) {
  bool is_served = false;
  const std::vector<Violation> violations = refusals_of(call, rules);
  for (const TargetDevice& target : matrix.targets) {
    if (!violations.empty()) {
      add_refused(call, target, violations, matrix);
      continue;
    }
    try {
      add_served(call, target, kernel_name(rules.configs(call, target).front()), axes, matrix);
      is_served = true;
    } catch (const DescriptorError& error) {
      add_refused(call, target, error.violations(), matrix);
    }
  }
  return is_served;
}

// The nearest call to `base` that has `pins`. One that contradicts itself is none of the
// operation's, and says nothing.
void probe_near(const AttentionDescriptor& base, const Pins& pins, const Axes& axes,
                const ServingRules& rules, SupportMatrix& matrix) {
  const AttentionDescriptor call = mended(base, pins, axes, rules);
  if (count_broken(rules.legality, call) == 0) {
    probe(call, axes, rules, matrix);
  }
}

// The values of an axis that some kernel of the operation is taken for.
Pins served_values(Operation operation, std::string_view name, const Axes& axes,
                   const SupportMatrix& matrix) {
  const auto axis = std::find_if(axes.begin(), axes.end(),
                                 [&](const DescriptorAxis& each) { return each.name == name; });
  const auto index = axis - axes.begin();
  Pins values;
  for (std::size_t i = 0; i < axis->values.size(); ++i) {
    const bool is_served =
        std::any_of(matrix.rows.begin(), matrix.rows.end(), [&](const ServedRow& row) {
          const std::vector<ProbedValue>& served = row.axes[static_cast<std::size_t>(index)].values;
          return row.operation == operation &&
                 std::any_of(served.begin(), served.end(), [&](const ProbedValue& each) {
                   return each.position == static_cast<int>(i);
                 });
        });
    if (is_served) {
      values.push_back(&axis->values[i]);
    }
  }
  return values;
}

// Asks about `pins` with every combination of one value of each axis called `names`, out of those
// that are served.
void probe_combinations(const AttentionDescriptor& base, const Pins& pins,
                        std::span<const std::string_view> names, const Axes& axes,
                        const ServingRules& rules, SupportMatrix& matrix) {
  if (names.empty()) {
    probe_near(base, pins, axes, rules, matrix);
    return;
  }
  for (const AxisValue* value : served_values(base.operation, names.front(), axes, matrix)) {
    Pins more = pins;
    more.push_back(value);
    probe_combinations(base, more, names.subspan(1), axes, rules, matrix);
  }
}

// Typical calls, mended to what the operation takes: the legal ones, if there are any.
std::vector<AttentionDescriptor> base_calls(Operation operation, const Axes& axes,
                                            const ServingRules& rules) {
  std::vector<AttentionDescriptor> legal;
  std::vector<AttentionDescriptor> illegal;
  for (const AttentionDescriptor& call : typical_calls(operation)) {
    const AttentionDescriptor base = mended(call, {}, axes, rules);
    auto& bases = count_broken(rules.legality, base) == 0 ? legal : illegal;
    if (std::find(bases.begin(), bases.end(), base) == bases.end()) {
      bases.push_back(base);
    }
  }
  return legal.empty() ? illegal : legal;
}

// Around calls that nothing serves there is nothing to find.
void probe_operation(Operation operation, const Axes& axes, const ServingRules& rules,
                     SupportMatrix& matrix) {
  std::vector<AttentionDescriptor> served;
  for (const AttentionDescriptor& base : base_calls(operation, axes, rules)) {
    if (probe(base, axes, rules, matrix)) {
      served.push_back(base);
    }
  }
  for (const AttentionDescriptor& base : served) {
    for (const DescriptorAxis& axis : axes) {
      for (const AxisValue& value : axis.values) {
        probe_near(base, {&value}, axes, rules, matrix);
      }
    }
  }
  for (const AttentionDescriptor& base : served) {
    probe_combinations(base, {}, std::array{dtypes_axis, output_axis, layout_axis, mask_axis}, axes,
                       rules, matrix);
    probe_combinations(base, {}, std::array{head_dims_axis, mask_axis}, axes, rules, matrix);
  }
}

}  // namespace

SupportMatrix make_support_matrix(std::span<const TargetDevice> targets,
                                  const ServingRules& rules) {
  SupportMatrix matrix{{targets.begin(), targets.end()}, {}, {}};
  const Axes axes = descriptor_axes(rules.legality);
  for (std::size_t i = 0; i < enumerator_names<Operation>().size(); ++i) {
    probe_operation(static_cast<Operation>(i), axes, rules, matrix);
  }
  return matrix;
}

}  // namespace attnjit
