#include "plan_comparison.hpp"

#include <fstream>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_json.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "attnjit/kernel_provider.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "attnjit/shown_text.hpp"
#include "command.hpp"
#include "entry_check.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view problem) {
  throw UsageError(fmt::format(
      "--against = {}: {}; fix: name the output of `attnjit plan … --json` or of `attnjit warm … "
      "--json`",
      shown_text(path.string()), problem));
}

json read_document(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    refuse(path, "is a directory");
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    refuse(path, "cannot be read");
  }
  json document = json::parse(text, nullptr, false);
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

PlanComparison compare_descriptors(const CachePlaces& places, const json& planned,
                                   const TargetArguments& targets) {
  PlanComparison comparison;
  KernelProvider provider(without_compiling(places), nullptr);
  std::set<std::string> seen;
  for (const TargetDevice& target : find_targets(targets)) {
    for (const json& each : planned) {
      const AttentionDescriptor descriptor = descriptor_from_json(each.at("descriptor").dump());
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

PlanComparison compare_keys(const CachePlaces& places, const json& kernels) {
  PlanComparison comparison;
  const DiskCache cache = open_cache(places);
  const std::vector<CacheLayer> layers = all_layers(cache);
  constexpr std::string_view hex_digits = "0123456789abcdef";
  for (const json& kernel : kernels) {
    comparison.wanted += 1;
    const std::string key = kernel.value("key", "");
    const bool is_key = key.size() == 32 && key.find_first_not_of(hex_digits) == std::string::npos;
    const std::string reason = is_key ? reason_of_miss(layers, key) : "was never given a key";
    if (!reason.empty()) {
      comparison.missing.push_back(
          {kernel.value("name", ""), kernel.value("arch", ""), key, reason});
    }
  }
  return comparison;
}

}  // namespace

PlanComparison compare_with_plan(const CachePlaces& places, const std::filesystem::path& plan,
                                 const TargetArguments& targets) {
  const json document = read_document(plan);
  try {
    return document.contains("planned") ? compare_descriptors(places, document["planned"], targets)
                                        : compare_keys(places, document["kernels"]);
  } catch (const json::exception& error) {
    refuse(plan, error.what());
  }
}

}  // namespace attnjit
