#include "kernel_source.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/config_selection.hpp"
#include "attnjit/disk_cache.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "attnjit/shown_text.hpp"
#include "attnjit/template_library.hpp"
#include "command.hpp"
#include "decode_source.hpp"
#include "model_source.hpp"
#include "stored_kernel.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

bool is_preset(std::string_view what) {
  const auto presets = model_presets();
  return std::any_of(presets.begin(), presets.end(),
                     [&](const EmbeddedFile& preset) { return preset_name(preset) == what; });
}

TargetDevice find_one_target(const TargetArguments& arguments) {
  const std::vector<TargetDevice> targets = find_targets(arguments);
  if (targets.size() > 1 && !arguments.names.empty()) {
    throw UsageError(
        fmt::format("arch = {}: the source of a kernel is for one target; fix: name "
                    "one",
                    fmt::join(arguments.names, ",")));
  }
  return targets.front();
}

// Without a role, the first kernel.
KernelConfig select_role(const AttentionDescriptor& descriptor, const TargetDevice& target,
                         std::optional<KernelRole> wanted) {
  const std::vector<KernelConfig> configs = select_configs(descriptor, target);
  const KernelRole role = wanted.value_or(role_of(configs.front()));
  std::vector<std::string_view> roles;
  for (const KernelConfig& config : configs) {
    if (role_of(config) == role) {
      return config;
    }
    roles.push_back(to_string(role_of(config)));
  }
  throw UsageError(fmt::format("kernel = {}: this operation has only {}; fix: choose one of these",
                               to_string(role), fmt::join(roles, ", ")));
}

KernelSource render_descriptor(const AttentionDescriptor& descriptor,
                               const SourceRequest& request) {
  const TargetDevice target = find_one_target(request.target);
  const KernelConfig config = select_role(descriptor, target, request.role);
  return {.kernel = render(config, target, TemplateLibrary::open(request.templates)), .key = ""};
}

// For a message: which layers share a descriptor.
std::string list_layers(const std::vector<PlannedDescriptor>& planned) {
  std::vector<std::string> groups;
  for (const PlannedDescriptor& each : planned) {
    groups.push_back(format_ranges(each.layers));
  }
  return fmt::format("{} (`attnjit plan` shows them)", fmt::join(groups, "; or "));
}

const PlannedDescriptor& find_layer(const ModelPlan& plan, std::optional<int> layer, Phase phase) {
  if (!layer && plan.planned.size() == 1) {
    return plan.planned.front();
  }
  if (!layer) {
    throw UsageError(
        fmt::format("layer is not set, and the {} layers of this model need {} "
                    "different descriptors; fix: pass --layer with one of {}",
                    to_string(phase), plan.planned.size(), list_layers(plan.planned)));
  }
  for (const PlannedDescriptor& each : plan.planned) {
    if (std::find(each.layers.begin(), each.layers.end(), *layer) != each.layers.end()) {
      return each;
    }
  }
  throw UsageError(
      fmt::format("layer = {}: not a layer with attention of this model, which has {} "
                  "layers; fix: pass --layer with one of {}",
                  *layer, plan.num_layers, list_layers(plan.planned)));
}

KernelSource render_model(const SourceRequest& request) {
  PlanOptions options = request.deployment;
  const Phase phase = request.phase.value_or(Phase::decode);
  options.phases = {phase};
  const ModelPlan plan = plan_model_source(request.what, options);
  return render_descriptor(find_layer(plan, request.layer, phase).descriptor, request);
}

KernelSource read_stored(const SourceRequest& request) {
  refuse_option(request.role.has_value(), "--kernel", "a key, which names one kernel");
  refuse_option(!request.target.names.empty(), "--arch", "a key, which names one target");
  refuse_option(!request.templates.empty(), "--templates", "a key, whose source is stored");
  refuse_deployment(request.deployment, "a key, which names one kernel");
  const DiskCache cache(resolve_cache_directory(request.cache_directory), nullptr);
  StoredKernel stored = find_stored_kernel(cache, request.what);
  return {.kernel = std::move(stored.kernel), .key = std::move(stored.digest)};
}

[[noreturn]] void throw_unknown(const std::string& what) {
  const std::vector<std::string_view> near = near_presets(what);
  throw UsageError(fmt::format(
      "what = \"{}\": neither a preset{}, nor a path (with a slash, or ending in .json), nor "
      "descriptor JSON (beginning with a brace), nor a key (6 to 32 hex digits); fix: see `attnjit "
      "models` for presets and `attnjit warm` for keys",
      shown_text(what),
      near.empty() ? "" : fmt::format(" (near ones are {})", fmt::join(near, ", "))));
}

}  // namespace

KernelSource find_kernel_source(const SourceRequest& request) {
  if (const auto descriptor = find_descriptor(request.what)) {
    refuse_option(request.layer.has_value(), "--layer", "a descriptor");
    refuse_option(request.phase.has_value(), "--phase", "a descriptor");
    refuse_deployment(request.deployment, "a descriptor");
    return render_descriptor(*descriptor, request);
  }
  if (names_file(request.what) || is_preset(request.what)) {
    return render_model(request);
  }
  refuse_option(request.layer.has_value(), "--layer", "no model");
  refuse_option(request.phase.has_value(), "--phase", "no model");
  if (looks_like_key(request.what)) {
    return read_stored(request);
  }
  throw_unknown(request.what);
}

const std::string& config_header_of(const RenderedKernel& kernel) {
  for (const SourceFile& header : kernel.headers) {
    if (header.name == "kernel_config.cuh") {
      return header.text;
    }
  }
  throw std::runtime_error("kernel " + kernel.name + " includes no kernel_config.cuh");
}

}  // namespace attnjit
