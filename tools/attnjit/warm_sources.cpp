#include "warm_sources.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/shown_text.hpp"
#include "command.hpp"
#include "decode_source.hpp"
#include "miss_trace_file.hpp"
#include "model_source.hpp"

namespace attnjit {
namespace {

// A descriptor alone: of no layer.
PlannedDescriptor planned_alone(const AttentionDescriptor& descriptor) {
  PlannedDescriptor planned;
  planned.descriptor = descriptor;
  return planned;
}

void add_model(WarmWork& work, const std::string& name, const WarmSources& sources,
               const std::vector<TargetDevice>& targets) {
  const ModelPlan plan = plan_model_source(name, sources.deployment);
  const bool is_alone = sources.what.size() == 1;
  if (is_alone) {
    work.model = name;
    work.model_type = plan.model_type;
  }
  add_kernel_jobs(work.list, plan.planned, targets, is_alone ? "" : shown_text(name));
  if (!plan.unread_fields.empty()) {
    work.remarks.push_back(
        fmt::format("fields of {} that look like attention were not understood: {}", name,
                    fmt::join(plan.unread_fields, ", ")));
  }
}

// Whether any of `what` is a model.
bool add_named(WarmWork& work, const WarmSources& sources) {
  const std::vector<TargetDevice> targets = find_targets(sources.targets);
  bool has_model = false;
  for (const std::string& what : sources.what) {
    if (const auto descriptor = find_descriptor(what)) {
      const PlannedDescriptor planned = planned_alone(*descriptor);
      add_kernel_jobs(work.list, {&planned, 1}, targets, "");
    } else {
      add_model(work, what, sources, targets);
      has_model = true;
    }
  }
  return has_model;
}

void add_trace(WarmWork& work, const std::filesystem::path& file) {
  MissTraceFile trace = read_miss_trace(file);
  add_kernel_jobs(work.list, trace.jobs);
  for (std::string& line : trace.unread) {
    work.remarks.push_back("left out: " + std::move(line));
  }
}

}  // namespace

WarmWork find_warm_work(const WarmSources& sources) {
  if (sources.what.empty() && sources.traces.empty()) {
    throw UsageError(
        "what = nothing: name a model (config.json or preset), a descriptor (JSON text or file), "
        "or a trace of misses with --from-trace; fix: see `attnjit models` for presets");
  }
  WarmWork work;
  bool has_model = false;
  if (!sources.what.empty()) {
    has_model = add_named(work, sources);
  } else {
    refuse_option(!sources.targets.names.empty(), "--arch", "a trace, which names its targets");
  }
  if (!has_model) {
    const char* const others = "descriptors or traces only";
    refuse_deployment(sources.deployment, others);
    refuse_option(sources.deployment.phases != PlanOptions{}.phases, "--phases", others);
  }
  for (const std::filesystem::path& file : sources.traces) {
    add_trace(work, file);
  }
  return work;
}

}  // namespace attnjit
