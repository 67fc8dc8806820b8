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

template <typename Value>
bool contains(const std::vector<Value>& values, Value value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

Phase phase_of(Operation operation) {
  const bool is_decode =
      operation == Operation::decode || operation == Operation::sparse_mla_decode;
  return is_decode ? Phase::decode : Phase::prefill;
}

// "decode, prefill or prefill_kvcache".
std::string list_operations(const std::vector<Operation>& operations) {
  std::string text;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const bool is_last = i + 1 == operations.size();
    text += i == 0 ? "" : is_last ? " or " : ", ";
    text += to_string(operations[i]);
  }
  return text;
}

// Throws DescriptorError for a descriptor that is wrong, or of none of `operations`.
void require_call(const AttentionDescriptor& descriptor, const std::vector<Operation>& operations) {
  validate(descriptor);
  if (!contains(operations, descriptor.operation)) {
    throw DescriptorError({{"operation", std::string(to_string(descriptor.operation)),
                            fmt::format("must be {} here", list_operations(operations)),
                            "pass a descriptor of that operation, or call what serves this one"}});
  }
}

PlannedCalls calls_of(const ModelPlan& plan, const std::vector<Operation>& operations) {
  PlannedCalls calls;
  for (const PlannedDescriptor& planned : plan.planned) {
    try {
      require_call(planned.descriptor, operations);
      calls.served.push_back(planned);
    } catch (const DescriptorError& error) {
      calls.refused.push_back({.descriptor = planned.descriptor,
                               .use = {planned.phase, planned.layers, ""},
                               .archs = {},
                               .violations = error.violations()});
    }
  }
  return calls;
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

PlannedCalls find_calls(const PlanArguments& arguments, const std::vector<Operation>& operations) {
  if (const auto descriptor = find_descriptor(arguments.model)) {
    refuse_deployment(arguments.options, "a descriptor");
    refuse_option(arguments.options.phases != PlanOptions{}.phases, "--phases", "a descriptor");
    require_call(*descriptor, operations);
    PlannedCalls calls;
    PlannedDescriptor& planned = calls.served.emplace_back();
    planned.descriptor = *descriptor;
    planned.phase = phase_of(descriptor->operation);
    return calls;
  }
  PlanArguments wanted = arguments;
  std::erase_if(wanted.options.phases, [&](Phase phase) {
    return std::none_of(operations.begin(), operations.end(),
                        [&](Operation operation) { return phase_of(operation) == phase; });
  });
  if (wanted.options.phases.empty()) {
    throw UsageError("phases = prefill: this command knows only decode; fix: leave --phases out");
  }
  const ModelPlan plan = make_plan(wanted);
  PlannedCalls calls = calls_of(plan, operations);
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

std::vector<AttentionDescriptor> find_descriptors(const PlanArguments& arguments,
                                                  const std::vector<Operation>& operations) {
  std::vector<AttentionDescriptor> descriptors;
  for (const PlannedDescriptor& call : find_calls(arguments, operations).served) {
    descriptors.push_back(call.descriptor);
  }
  return descriptors;
}

}  // namespace attnjit
