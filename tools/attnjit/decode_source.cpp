#include "decode_source.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "attnjit/descriptor_json.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "attnjit/shown_text.hpp"
#include "command.hpp"
#include "model_source.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

bool is_json_text(std::string_view what) {
  const std::size_t first = what.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && what[first] == '{';
}

// A config.json, as opposed to a descriptor. Text that is no JSON counts as a descriptor, whose
// parser says what is wrong with it.
bool is_model(const std::string& json_text) {
  // The names alone are asked for; what is nested is left out, for it may nest without end.
  const auto is_outermost = [](int depth, auto, const auto&) { return depth <= 1; };
  const auto json = nlohmann::json::parse(json_text, is_outermost, /*allow_exceptions=*/false);
  return json.is_object() && (json.contains("model_type") || json.contains("architectures"));
}

// `violations` with `place` before every field.
std::vector<Violation> at_place(std::vector<Violation> violations, const std::string& place) {
  for (Violation& violation : violations) {
    violation.field = fmt::format("{}: {}", place, violation.field);
  }
  return violations;
}

PlannedCalls calls_of(const ModelPlan& plan) {
  PlannedCalls calls;
  for (const PlannedDescriptor& planned : plan.planned) {
    try {
      validate(planned.descriptor);
      calls.served.push_back(planned);
    } catch (const DescriptorError& error) {
      calls.refused.push_back({.descriptor = planned.descriptor,
                               .use = {planned.phase, planned.layers},
                               .archs = {},
                               .violations = error.violations()});
    }
  }
  return calls;
}

bool contains(const std::vector<Phase>& phases, Phase phase) {
  return std::find(phases.begin(), phases.end(), phase) != phases.end();
}

// The phase that `descriptor` serves, one of `phases`.
Phase phase_of(const AttentionDescriptor& descriptor, const std::vector<Phase>& phases) {
  const Operation operation = descriptor.operation;
  if (contains(phases, Phase::prefill)) {
    if (operation == Operation::prefill || operation == Operation::prefill_kvcache) {
      return Phase::prefill;
    }
    if (operation != Operation::decode) {
      throw DescriptorError({{"operation", std::string(to_string(operation)),
                              "must be decode, prefill or prefill_kvcache here",
                              "pass a descriptor of one of these"}});
    }
  }
  require_operation(descriptor, Operation::decode);
  return Phase::decode;
}

[[noreturn]] void throw_all(const std::vector<RefusedDescriptor>& refused) {
  std::vector<Violation> violations;
  for (const RefusedDescriptor& each : refused) {
    const auto placed = at_place(each.violations, describe(each.use));
    violations.insert(violations.end(), placed.begin(), placed.end());
  }
  throw DescriptorError(std::move(violations));
}

}  // namespace

void refuse_option(bool is_given, std::string_view option, std::string_view what) {
  if (is_given) {
    throw UsageError(fmt::format("{} was given with {}, where it means nothing; fix: leave it out",
                                 option, what));
  }
}

void refuse_deployment(const PlanOptions& given, std::string_view what) {
  const PlanOptions none;
  refuse_option(given.tensor_parallel != none.tensor_parallel, "--tp", what);
  refuse_option(given.dtype != none.dtype, "--dtype", what);
  refuse_option(given.dtype_kv != none.dtype_kv, "--kv-dtype", what);
  refuse_option(given.page_size != none.page_size, "--page", what);
  refuse_option(given.max_seqlen_q != none.max_seqlen_q, "--max-seqlen-q", what);
  refuse_option(given.batch_invariant, "--batch-invariant", what);
}

std::optional<AttentionDescriptor> find_descriptor(const std::string& what) {
  if (is_json_text(what)) {
    return descriptor_from_json(what);
  }
  if (!names_file(what)) {
    return std::nullopt;
  }
  const std::string text = read_model_source(what);
  if (is_model(text)) {
    return std::nullopt;
  }
  try {
    return descriptor_from_json(text);
  } catch (const DescriptorError& error) {
    throw DescriptorError(at_place(error.violations(), shown_text(what)));
  }
}

PlannedCalls find_calls(const PlanArguments& arguments, const std::vector<Phase>& phases) {
  if (const auto descriptor = find_descriptor(arguments.model)) {
    refuse_deployment(arguments.options, "a descriptor");
    refuse_option(arguments.options.phases != PlanOptions{}.phases, "--phases", "a descriptor");
    validate(*descriptor);
    PlannedCalls calls;
    PlannedDescriptor& planned = calls.served.emplace_back();
    planned.descriptor = *descriptor;
    planned.phase = phase_of(*descriptor, phases);
    return calls;
  }
  PlanArguments wanted = arguments;
  std::erase_if(wanted.options.phases, [&](Phase phase) { return !contains(phases, phase); });
  if (wanted.options.phases.empty()) {
    throw UsageError("phases = prefill: this command knows only decode; fix: leave --phases out");
  }
  const ModelPlan plan = make_plan(wanted);
  PlannedCalls calls = calls_of(plan);
  if (calls.served.empty() && !calls.refused.empty()) {
    throw_all(calls.refused);
  }
  if (!plan.unread_fields.empty()) {
    print_message("attnjit: fields of {} that look like attention were not understood: {}\n",
                  arguments.model, fmt::join(plan.unread_fields, ", "));
  }
  for (const RefusedDescriptor& refused : calls.refused) {
    print_message("{}", format_refused(refused));
  }
  return calls;
}

std::vector<AttentionDescriptor> find_decode_descriptors(const PlanArguments& arguments) {
  std::vector<AttentionDescriptor> descriptors;
  for (const PlannedDescriptor& decode : find_calls(arguments, {Phase::decode}).served) {
    descriptors.push_back(decode.descriptor);
  }
  return descriptors;
}

}  // namespace attnjit
