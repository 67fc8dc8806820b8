#include "plan_comparison.hpp"

#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_json.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "attnjit/kernel_provider.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "attnjit/shown_text.hpp"
#include "command.hpp"
#include "decode_source.hpp"
#include "entry_check.hpp"
#include "json_fields.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view where_from =
    "name the output of `attnjit plan … --json` or of `attnjit warm … --json`";

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view problem) {
  throw UsageError(
      fmt::format("--against = {}: {}; fix: {}", shown_text(path.string()), problem, where_from));
}

Json read_document(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    refuse(path, "is a directory");
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    refuse(path, "cannot be read");
  }
  Json document = parse_shallow_json(text);
  if (!document.is_object() || (!document.contains("planned") && !document.contains("kernels"))) {
    refuse(path, "is not such a document");
  }
  return document;
}

// Places of a cache, asked without a compiler.
KernelProviderOptions without_compiling(const CachePlaces& places) {
  KernelProviderOptions options;
  options.cache_directory = places.directory;
  options.cache_layers = places.layers;
  options.jit = JitPolicy::forbidden;
  return options;
}

void look_for(KernelProvider& provider, const KernelConfig& config, const TargetDevice& target,
              std::set<std::string>& seen, PlanComparison& comparison) {
  const RenderedKernel kernel = render(config, target, provider.templates());
  if (!seen.insert(kernel.arch + kernel.config).second) {
    return;
  }
  comparison.wanted += 1;
  const KernelLookup lookup = provider.look_up(kernel);
  if (!lookup.provided) {
    comparison.missing.push_back(
        {describe(config), target.arch, lookup.key.digest, std::string(to_string(lookup.reason))});
  }
}

// All of them, before anything is looked for.
std::vector<AttentionDescriptor> read_descriptors(const JsonObject& document) {
  const std::size_t count = array_field(document, "planned", "the calls of a plan").size();
  std::vector<AttentionDescriptor> descriptors;
  for (std::size_t i = 0; i < count; ++i) {
    const JsonObject call = element_of(document, "planned", i, "a call of a plan");
    const Json& descriptor = object_field(call, "descriptor", "a descriptor of attention");
    try {
      descriptors.push_back(descriptor_from_json(descriptor.dump()));
    } catch (const DescriptorError& error) {
      throw JsonFieldError(fmt::format("{}.descriptor: {}", call.place, error.what()));
    }
  }
  return descriptors;
}

PlanComparison compare_descriptors(const CachePlaces& places, const JsonObject& document,
                                   const TargetArguments& targets) {
  const std::vector<AttentionDescriptor> descriptors = read_descriptors(document);
  PlanComparison comparison;
  KernelProvider provider(without_compiling(places), nullptr);
  std::set<std::string> seen;
  for (const TargetDevice& target : find_targets(targets)) {
    for (const AttentionDescriptor& descriptor : descriptors) {
      try {
        for (const KernelConfig& config : select_configs(descriptor, target)) {
          look_for(provider, config, target, seen, comparison);
        }
      } catch (const DescriptorError& error) {
        print_message("attnjit: not served on {}, so not looked for: {}\n", target.arch,
                      error.what());
      }
    }
  }
  return comparison;
}

// The first place that has a good entry of this digest, or the reasons of all.
std::string reason_of_miss(const std::vector<CacheLayer>& layers, const std::string& key) {
  std::string reasons;
  for (const CacheLayer& layer : layers) {
    const CheckedEntry checked = check_entry(key, layer.read(key));
    if (checked.problem.empty()) {
      return "";
    }
    reasons += (reasons.empty() ? "" : "; ") + checked.problem;
  }
  return reasons;
}

// All of them, before anything is looked for; without reasons.
std::vector<MissingKernel> read_kernels(const JsonObject& document) {
  const std::size_t count = array_field(document, "kernels", "the kernels of a warm").size();
  std::vector<MissingKernel> kernels;
  for (std::size_t i = 0; i < count; ++i) {
    const JsonObject kernel = element_of(document, "kernels", i, "a kernel of a warm");
    const bool has_key = kernel.json.contains("key");  // one that could not be made has none
    kernels.push_back({text_field(kernel, "name", "a kernel's name"),
                       text_field(kernel, "arch", "a target such as sm_90a"),
                       has_key ? key_field(kernel, "key") : "", ""});
  }
  return kernels;
}

PlanComparison compare_keys(const CachePlaces& places, const JsonObject& document) {
  PlanComparison comparison;
  const std::vector<MissingKernel> kernels = read_kernels(document);
  const DiskCache cache = open_cache(places);
  const std::vector<CacheLayer> layers = all_layers(cache);
  for (MissingKernel kernel : kernels) {
    comparison.wanted += 1;
    kernel.reason =
        kernel.key.empty() ? "was never given a key" : reason_of_miss(layers, kernel.key);
    if (!kernel.reason.empty()) {
      comparison.missing.push_back(std::move(kernel));
    }
  }
  return comparison;
}

}  // namespace

PlanComparison compare_with_plan(const CachePlaces& places, const std::filesystem::path& plan,
                                 const TargetArguments& targets) {
  const Json json = read_document(plan);
  const JsonObject document{json, "", std::string(where_from)};
  try {
    if (json.contains("planned")) {
      return compare_descriptors(places, document, targets);
    }
    refuse_option(!targets.names.empty(), "--arch", "a document of `attnjit warm`, which has keys");
    return compare_keys(places, document);
  } catch (const JsonFieldError& error) {
    throw UsageError(fmt::format("--against = {}: {}", shown_text(plan.string()), error.what()));
  }
}

}  // namespace attnjit
