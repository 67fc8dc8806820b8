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
#include "cache_places.hpp"
#include "command.hpp"
#include "decode_source.hpp"
#include "kernel_jobs.hpp"
#include "model_source.hpp"
#include "standard_streams.hpp"
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
                               const KernelRequest& request) {
  const TargetDevice target = find_one_target(request.target);
  const KernelConfig config = select_role(descriptor, target, request.role);
  return {.kernel = render(config, target, TemplateLibrary::open(request.provider.templates)),
          .key = "",
          .target = target,
          .descriptor = descriptor};
}

// For a message: which layers share a descriptor.
std::string list_layers(const std::vector<PlannedDescriptor>& planned) {
  std::vector<std::string> groups;
  for (const PlannedDescriptor& each : planned) {
    groups.push_back(format_ranges(each.layers));
  }
  return fmt::format("{} (`attnjit plan` shows them)", fmt::join(groups, "; or "));
}

[[noreturn]] void throw_no_layer(int layer, int num_layers,
                                 const std::vector<PlannedDescriptor>& planned) {
  throw UsageError(
      fmt::format("layer = {}: not a layer with attention of this model, which has {} "
                  "layers; fix: pass --layer with one of {}",
                  layer, num_layers, list_layers(planned)));
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
  throw_no_layer(*layer, plan.num_layers, plan.planned);
}

KernelSource render_model(const KernelRequest& request) {
  PlanOptions options = request.deployment;
  const Phase phase = request.phase.value_or(Phase::decode);
  options.phases = {phase};
  const ModelPlan plan = plan_model_source(request.what, options);
  return render_descriptor(find_layer(plan, request.layer, phase).descriptor, request);
}

KernelSource read_stored(const KernelRequest& request) {
  refuse_option(request.role.has_value(), "--kernel", "a key, which names one kernel");
  refuse_option(request.layer.has_value(), "--layer", "a key, which names one kernel");
  refuse_option(request.phase.has_value(), "--phase", "a key, which names one kernel");
  refuse_option(!request.target.names.empty(), "--arch", "a key, which names one target");
  refuse_option(!request.provider.templates.empty(), "--templates",
                "a key, whose source is stored");
  refuse_deployment(request.deployment, "a key, which names one kernel");
  const DiskCache cache = open_cache({request.provider.cache_directory, {}});
  StoredKernel stored = find_stored_kernel(cache, request.what);
  return {.kernel = std::move(stored.kernel),
          .key = std::move(stored.digest),
          .target = std::nullopt,
          .descriptor = std::nullopt};
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

enum class NamedBy { descriptor, model, key };

// Refuses options that mean nothing beside what is named; `descriptor` is set to one that is named.
NamedBy classify(const KernelRequest& request, std::optional<AttentionDescriptor>& descriptor) {
  descriptor = find_descriptor(request.what);
  if (descriptor) {
    refuse_option(request.layer.has_value(), "--layer", "a descriptor");
    refuse_option(request.phase.has_value(), "--phase", "a descriptor");
    refuse_deployment(request.deployment, "a descriptor");
    return NamedBy::descriptor;
  }
  if (names_file(request.what) || is_preset(request.what)) {
    return NamedBy::model;
  }
  if (!looks_like_key(request.what)) {
    throw_unknown(request.what);
  }
  return NamedBy::key;
}

bool is_wanted(const KernelRequest& request, const KernelConfig& config) {
  return !request.role || *request.role == role_of(config);
}

// The kernels of a descriptor, on every target.
std::vector<KernelSource> render_all(const AttentionDescriptor& descriptor,
                                     const KernelRequest& request) {
  const TemplateLibrary library = TemplateLibrary::open(request.provider.templates);
  std::vector<KernelSource> sources;
  for (const TargetDevice& target : find_targets(request.target)) {
    if (request.role) {
      select_role(descriptor, target, request.role);  // that there is one
    }
    for (const KernelConfig& config : select_configs(descriptor, target)) {
      if (is_wanted(request, config)) {
        sources.push_back({render(config, target, library), "", target, descriptor});
      }
    }
  }
  return sources;
}

std::vector<KernelSource> render_model_kernels(const KernelRequest& request) {
  PlanOptions options = request.deployment;
  if (request.phase) {
    options.phases = {*request.phase};
  }
  ModelPlan plan = plan_model_source(request.what, options);
  if (request.layer) {
    const std::vector<PlannedDescriptor> all = plan.planned;
    std::erase_if(plan.planned, [&](const PlannedDescriptor& planned) {
      return std::find(planned.layers.begin(), planned.layers.end(), *request.layer) ==
             planned.layers.end();
    });
    if (plan.planned.empty()) {
      throw_no_layer(*request.layer, plan.num_layers, all);
    }
  }
  const KernelJobs list = list_kernel_jobs(plan, find_targets(request.target));
  for (const RefusedDescriptor& refused : list.refused) {
    print_message("{}", format_refused(refused));
  }
  if (list.jobs.empty() && !list.refused.empty()) {
    throw DescriptorError(list.refused.front().violations);
  }
  const TemplateLibrary library = TemplateLibrary::open(request.provider.templates);
  std::vector<KernelSource> sources;
  for (const KernelJob& job : list.jobs) {
    if (is_wanted(request, job.config)) {
      sources.push_back({render(job.config, job.target, library), "", job.target, std::nullopt});
    }
  }
  if (sources.empty() && request.role) {
    throw UsageError(fmt::format("kernel = {}: this model has no such kernel; fix: leave it out",
                                 to_string(*request.role)));
  }
  return sources;
}

}  // namespace

KernelSource find_kernel_source(const KernelRequest& request) {
  std::optional<AttentionDescriptor> descriptor;
  switch (classify(request, descriptor)) {
    case NamedBy::descriptor:
      return render_descriptor(*descriptor, request);
    case NamedBy::model:
      return render_model(request);
    case NamedBy::key:
      break;
  }
  return read_stored(request);
}

std::vector<KernelSource> find_kernel_sources(const KernelRequest& request) {
  std::optional<AttentionDescriptor> descriptor;
  switch (classify(request, descriptor)) {
    case NamedBy::descriptor:
      return render_all(*descriptor, request);
    case NamedBy::model:
      return render_model_kernels(request);
    case NamedBy::key:
      break;
  }
  return {read_stored(request)};
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
