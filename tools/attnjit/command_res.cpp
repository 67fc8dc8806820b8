// attnjit res: what kernels use of a multiprocessor, and how many of their blocks it holds.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cache_places.hpp"
#include "command.hpp"
#include "decode_source.hpp"
#include "json_document.hpp"
#include "kernel_facts.hpp"
#include "kernel_source.hpp"
#include "kernel_stage.hpp"
#include "standard_streams.hpp"
#include "stored_kernel.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

struct ResCommand {
  KernelRequest request;  // what: empty for all that the cache holds
  bool only_cached = false;
  bool fails_on_spill = false;
  bool as_json = false;
};

struct MeasuredKernel {
  std::string key;
  KernelMetadata metadata;
};

struct MissingKernel {
  RenderedKernel kernel;
  std::string key;
  MissReason reason;
};

struct Resources {
  std::vector<MeasuredKernel> kernels;
  std::vector<MissingKernel> missing;  // asked for, and not in the cache
};

// All that the cache holds, for the targets that are named if any are.
Resources measure_cache(const KernelRequest& request) {
  constexpr std::string_view what = "all kernels of the cache";
  refuse_option(request.layer.has_value(), "--layer", what);
  refuse_option(request.phase.has_value(), "--phase", what);
  refuse_option(request.role.has_value(), "--kernel", what);
  refuse_option(!request.provider.templates.empty(), "--templates", what);
  refuse_deployment(request.deployment, what);
  const DiskCache cache = open_cache({request.provider.cache_directory, {}});
  std::vector<std::string> archs;
  if (!request.target.names.empty()) {
    for (const TargetDevice& target : find_targets(request.target)) {
      archs.push_back(target.arch);
    }
  }
  Resources resources;
  for (StoredKernel& stored : list_stored_kernels(cache).kernels) {
    if (archs.empty() ||
        std::find(archs.begin(), archs.end(), stored.metadata.arch) != archs.end()) {
      resources.kernels.push_back({std::move(stored.digest), std::move(stored.metadata)});
    }
  }
  return resources;
}

Resources measure_named(const ResCommand& command) {
  const std::vector<KernelSource> sources = find_kernel_sources(command.request);
  KernelProvider provider(telling_options(command.request.provider));
  Resources resources;
  for (const KernelSource& source : sources) {
    if (!command.only_cached || !source.key.empty()) {
      KernelBinary binary = binary_of(source, provider);
      resources.kernels.push_back({std::move(binary.key), std::move(binary.metadata)});
      continue;
    }
    KernelLookup lookup = provider.look_up(source.kernel);
    if (lookup.provided) {
      resources.kernels.push_back({lookup.key.digest, std::move(lookup.provided->metadata)});
    } else {
      resources.missing.push_back({source.kernel, lookup.key.digest, lookup.reason});
    }
  }
  return resources;
}

void print_text(const Resources& resources) {
  std::vector<TableColumn> columns = {{"kernel"}, {"target"}};
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> titles;
  for (const auto& [name, value] : resource_facts(KernelMetadata{})) {
    titles.push_back(name);
  }
  for (const std::string& title : titles) {
    columns.push_back({title, title == "limit" ? Alignment::left : Alignment::right});
  }
  columns.push_back({"key"});
  for (const MeasuredKernel& kernel : resources.kernels) {
    std::vector<std::string> row = {kernel.metadata.name, kernel.metadata.arch};
    for (const auto& [name, value] : resource_facts(kernel.metadata)) {
      row.push_back(value);
    }
    row.push_back(kernel.key.substr(0, shown_key_digits));
    rows.push_back(std::move(row));
  }
  if (!rows.empty()) {
    print_result("{}", format_table(columns, rows));
  }
  for (const MissingKernel& missing : resources.missing) {
    print_message("attnjit: {} for {} is not in the cache ({}); fix: run without --cached\n",
                  missing.kernel.name, missing.kernel.arch, to_string(missing.reason));
  }
}

void print_json(const Resources& resources) {
  Json kernels = Json::array();
  for (const MeasuredKernel& kernel : resources.kernels) {
    Json json = {{"key", kernel.key},
                 {"name", kernel.metadata.name},
                 {"arch", kernel.metadata.arch},
                 {"config", config_json(kernel.metadata.config)}};
    json.update(resources_json(kernel.metadata));
    kernels.push_back(std::move(json));
  }
  Json missing = Json::array();
  for (const MissingKernel& kernel : resources.missing) {
    missing.push_back({{"key", kernel.key},
                       {"name", kernel.kernel.name},
                       {"arch", kernel.kernel.arch},
                       {"reason", to_string(kernel.reason)}});
  }
  print_result(
      "{}\n",
      to_line({{"schema", 1}, {"command", "res"}, {"kernels", kernels}, {"missing", missing}}));
}

ExitCode run(const ResCommand& command) {
  const Resources resources =
      command.request.what.empty() ? measure_cache(command.request) : measure_named(command);
  if (command.as_json) {
    print_json(resources);
  } else {
    print_text(resources);
  }
  std::size_t spilling = 0;
  for (const MeasuredKernel& kernel : resources.kernels) {
    spilling += spill_bytes(kernel.metadata) > 0 ? 1 : 0;
  }
  if (command.fails_on_spill && spilling > 0) {
    print_message("attnjit: {} spill{} registers\n", count_of(spilling, "kernel"),
                  spilling == 1 ? "s" : "");
    return ExitCode::failed;
  }
  return resources.missing.empty() ? ExitCode::succeeded : ExitCode::failed;
}

}  // namespace

void add_res_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("res", "Show registers, spills, shared memory and occupancy of kernels");
  const auto res = std::make_shared<ResCommand>();
  add_kernel_arguments(*command, res->request);
  command->get_option("what")->required(false)->description(
      "Descriptor (JSON text or file), model (config.json or preset), or key (default: all that "
      "the cache holds)");
  add_compiler_option(*command, res->request);
  command->add_flag("--cached", res->only_cached, "Compile nothing: only what the cache holds");
  command->add_flag("--fail-on-spill", res->fails_on_spill, "End with 1 if a kernel spills");
  command->add_flag("--json", res->as_json, "Print one JSON document");
  command->callback([&action, res] { action = [res] { return run(*res); }; });
}

}  // namespace attnjit
