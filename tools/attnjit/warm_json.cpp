// The JSON form of a WarmReport.
#include <utility>

#include <nlohmann/json.hpp>

#include "attnjit/descriptor_json.hpp"
#include "json_document.hpp"
#include "warm_report.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

Json use_json(const KernelUse& use) {
  if (use.layers.empty()) {
    return {{"operation", use.caller}};
  }
  Json json = {{"phase", to_string(use.phase)}, {"layers", use.layers}};
  if (!use.caller.empty()) {
    json["model"] = use.caller;
  }
  return json;
}

Json kernel_json(const KernelJob& job, const WarmedKernel& kernel) {
  Json uses = Json::array();
  for (const KernelUse& use : job.uses) {
    uses.push_back(use_json(use));
  }
  Json json = {{"name", describe(job.config)},
               {"role", to_string(role_of(job.config))},
               {"arch", job.target.arch},
               {"config", Json::parse(to_json(job.config))},
               {"uses", uses},
               {"state", to_string(kernel.state)}};
  if (!job.traced_key.empty()) {
    json["traced_key"] = job.traced_key;
  }
  if (kernel.miss) {
    json["miss"] = to_string(*kernel.miss);
  }
  if (kernel.state == WarmState::compiled || kernel.state == WarmState::cached) {
    const KernelResources& resources = kernel.metadata.resources;
    json["key"] = kernel.key;
    json["registers"] = resources.registers;
    json["spill_store_bytes"] = resources.spill_store_bytes;
    json["spill_load_bytes"] = resources.spill_load_bytes;
    json["static_shared_bytes"] = resources.static_shared_bytes;
    json["dynamic_shared_bytes"] = kernel.metadata.shared_memory_bytes;
    json["cubin_bytes"] = kernel.cubin_bytes;
    json["compile_milliseconds"] = kernel.metadata.compile_milliseconds;
    json["notes"] = kernel.metadata.notes;
  } else if (!kernel.problem.empty()) {
    json["problem"] = kernel.problem;
  }
  return json;
}

Json refused_json(const RefusedDescriptor& refused) {
  Json violations = Json::array();
  for (const Violation& violation : refused.violations) {
    violations.push_back({{"field", violation.field},
                          {"value", violation.value},
                          {"rule", violation.rule},
                          {"fix", violation.fix}});
  }
  Json json = use_json(refused.use);
  json["archs"] = refused.archs;
  json["descriptor"] = Json::parse(to_json(refused.descriptor));
  json["violations"] = violations;
  return json;
}

}  // namespace

std::string warm_json(const WarmReport& report) {
  Json kernels = Json::array();
  for (std::size_t i = 0; i < report.run.kernels.size(); ++i) {
    kernels.push_back(kernel_json(report.list.jobs[i], report.run.kernels[i]));
  }
  Json refused = Json::array();
  for (const RefusedDescriptor& descriptor : report.list.refused) {
    refused.push_back(refused_json(descriptor));
  }
  Json traces = Json::array();
  for (const std::filesystem::path& file : report.traces) {
    traces.push_back(file.string());
  }
  const WarmCounts counts = count_states(report.run);
  Json document = {{"schema", 1},      {"command", "warm"},     {"what", report.what},
                   {"traces", traces}, {"model", report.model}, {"model_type", report.model_type}};
  set_path(document, "cache_directory", report.cache_directory);
  document.update({{"kernels", kernels},
                   {"refused", refused},
                   {"counts",
                    {{"compiled", counts.compiled},
                     {"cached", counts.cached},
                     {"failed", counts.failed},
                     {"not_run", counts.not_run},
                     {"refused", report.list.refused.size()}}},
                   {"seconds", report.run.seconds},
                   {"interrupted", report.run.interrupted},
                   {"exit_code", static_cast<int>(warm_exit_code(report))}});
  return to_line(std::move(document));
}

}  // namespace attnjit
