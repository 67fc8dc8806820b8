// The arguments that every command on a model takes: which model, and how it is deployed.
#pragma once

#include <string>

#include "attnjit/model_plan.hpp"

namespace CLI {
class App;
}

namespace attnjit {

struct PlanArguments {
  std::string model;  // path of a config.json, or the name of a preset
  PlanOptions options;
  bool names_phases = false;  // --phases was given, be it the default
};

// Declares --tp, --dtype, --kv-dtype, --page, --max-seqlen-q and --batch-invariant on `command`;
// `options` must outlive the parse.
void add_deployment_options(CLI::App& command, PlanOptions& options);

// The same and --phases.
void add_plan_options(CLI::App& command, PlanOptions& options);

// Declares model, deployment and --phases on `command`; `arguments` must outlive the parse.
void add_plan_arguments(CLI::App& command, PlanArguments& arguments);

// Reads the model and plans it. Throws UsageError and ModelError.
ModelPlan make_plan(const PlanArguments& arguments);

}  // namespace attnjit
