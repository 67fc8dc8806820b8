// attnjit plan: the attention descriptors a model needs, which layers use each, and why.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "attnjit/descriptor_json.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "command.hpp"
#include "plan_arguments.hpp"
#include "standard_streams.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

struct PlanCommand {
  PlanArguments arguments;
  bool as_json = false;
};

// What stands against running a descriptor with this version: broken rules, else unserved axes.
std::vector<std::string> find_obstacles(const AttentionDescriptor& descriptor) {
  std::vector<Violation> violations = find_violations(descriptor, legality_rules());
  if (violations.empty()) {
    violations = find_violations(descriptor, support_rules());
  }
  std::vector<std::string> obstacles;
  for (const Violation& violation : violations) {
    obstacles.push_back(to_string(violation));
  }
  return obstacles;
}

json to_document(const PlannedDescriptor& planned) {
  json reasons = json::array();
  for (const AxisReason& reason : planned.reasons) {
    reasons.push_back(
        {{"field", reason.field}, {"value", reason.value}, {"reason", reason.reason}});
  }
  return {{"phase", to_string(planned.phase)},
          {"layers", planned.layers},
          {"descriptor", json::parse(to_json(planned.descriptor))},
          {"softmax_scale", planned.softmax_scale},
          {"softcap", planned.softcap},
          {"reasons", reasons},
          {"not_served", find_obstacles(planned.descriptor)}};
}

json to_document(const std::string& model, const ModelPlan& plan, const PlanOptions& options) {
  json phases = json::array();
  for (const Phase phase : options.phases) {
    phases.push_back(to_string(phase));
  }
  json planned = json::array();
  for (const PlannedDescriptor& each : plan.planned) {
    planned.push_back(to_document(each));
  }
  return {{"schema", 1},
          {"model", model},
          {"model_type", plan.model_type},
          {"num_layers", plan.num_layers},
          {"options",
           {{"tensor_parallel", options.tensor_parallel},
            {"dtype", to_string(options.dtype)},
            {"dtype_kv", to_string(options.dtype_kv)},
            {"page_size", options.page_size},
            {"max_seqlen_q", options.max_seqlen_q},
            {"batch_invariant", options.batch_invariant},
            {"phases", phases}}},
          {"planned", planned},
          {"layers_without_attention", plan.layers_without_attention},
          {"unread_fields", plan.unread_fields}};
}

void print_planned(const PlannedDescriptor& planned, std::size_t number) {
  print_result("\n[{}] {}, {} of the layers: {}\n", number, to_string(planned.phase),
               planned.layers.size(), format_ranges(planned.layers));
  for (const AxisReason& reason : planned.reasons) {
    print_result("    {:<15} {:<20} {}\n", reason.field, reason.value, reason.reason);
  }
  for (const std::string& obstacle : find_obstacles(planned.descriptor)) {
    print_result("    not served yet: {}\n", obstacle);
  }
}

void print_plan(const std::string& model, const ModelPlan& plan, const PlanOptions& options) {
  print_result("{}: {}, {} layers, tp {}: {} descriptors\n", model, plan.model_type,
               plan.num_layers, options.tensor_parallel, plan.planned.size());
  for (std::size_t index = 0; index < plan.planned.size(); ++index) {
    print_planned(plan.planned[index], index + 1);
  }
  if (!plan.layers_without_attention.empty()) {
    print_result("\nlayers without softmax attention: {}\n",
                 format_ranges(plan.layers_without_attention));
  }
  if (!plan.unread_fields.empty()) {
    print_result("\nfields of config.json that look like attention and were not understood: {}\n",
                 fmt::join(plan.unread_fields, ", "));
  }
}

ExitCode run(const PlanCommand& command) {
  const ModelPlan plan = make_plan(command.arguments);
  const std::string& model = command.arguments.model;
  if (command.as_json) {
    print_result("{}\n", to_document(model, plan, command.arguments.options)
                             .dump(-1, ' ', false, json::error_handler_t::replace));
  } else {
    print_plan(model, plan, command.arguments.options);
  }
  return ExitCode::succeeded;
}

}  // namespace

void add_plan_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("plan", "Show the attention descriptors that a model needs");
  const auto plan = std::make_shared<PlanCommand>();
  add_plan_arguments(*command, plan->arguments);
  command->add_flag("--json", plan->as_json, "Print one JSON document");
  command->callback([&action, plan] { action = [plan] { return run(*plan); }; });
}

}  // namespace attnjit
