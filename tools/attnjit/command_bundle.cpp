// attnjit bundle: the kernels of a cache as one file, to ship, mount or import elsewhere.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/shown_text.hpp"
#include "attnjit/target_device.hpp"
#include "bundle_selection.hpp"
#include "cache_places.hpp"
#include "command.hpp"
#include "json_document.hpp"
#include "standard_streams.hpp"
#include "stored_kernel.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct BundleCommand {
  CachePlaces places;
  fs::path output;
  BundleFilter filter;
  bool as_json = false;
};

// Cards stand for their architectures. What nothing in the cache matches would be left out of the
// bundle without a word.
BundleFilter resolve_filter(BundleFilter filter, const DiskCache& cache) {
  const std::vector<StoredKernel> stored = list_stored_kernels(cache).kernels;
  const auto require_one = [&](std::string_view option, const std::string& value, auto matches) {
    if (std::none_of(stored.begin(), stored.end(), matches)) {
      throw UsageError(
          fmt::format("{} = {}: the cache has no kernel of it; fix: see with `attnjit ls` what it "
                      "has, or fill it with `attnjit warm`",
                      option, shown_text(value)));
    }
  };
  for (std::string& arch : filter.archs) {
    if (const auto device = find_target_device(arch)) {
      arch = device->arch;
    }
    require_one("--arch", arch,
                [&](const StoredKernel& kernel) { return kernel.metadata.arch == arch; });
  }
  for (const std::string& name : filter.kernels) {
    require_one("--kernel", name,
                [&](const StoredKernel& kernel) { return kernel.metadata.name == name; });
  }
  return filter;
}

void print_json(const BundleCommand& command, const BundleSelection& selection,
                std::uint64_t bytes) {
  Json document = {{"schema", 1}, {"command", "bundle"}};
  set_path(document, "bundle", command.output);
  document.update({{"kernels", selection.kernels},
                   {"entries", selection.items.size()},
                   {"bytes", bytes},
                   {"left_out", selection.left_out}});
  print_result("{}\n", to_line(std::move(document)));
}

ExitCode run(const BundleCommand& command) {
  const DiskCache cache = open_cache(command.places);
  require_trusted(cache);
  const std::vector<CacheLayer> layers = all_layers(cache);
  const BundleSelection selection =
      select_for_bundle(layers, resolve_filter(command.filter, cache));
  for (const std::string& bad : selection.left_out) {
    print_message("attnjit: left out: {}\n", bad);
  }
  if (selection.kernels == 0) {
    throw UsageError(
        "no kernel to bundle; fix: fill the cache with `attnjit warm`, or see with `attnjit ls` "
        "which --arch and --kernel it has");
  }
  const std::uint64_t bytes = write_bundle(command.output, selection.items);
  if (command.as_json) {
    print_json(command, selection, bytes);
  } else {
    print_result("{}: {}, {}\n", command.output.string(), count_of(selection.kernels, "kernel"),
                 mebibytes(bytes));
  }
  return selection.left_out.empty() ? ExitCode::succeeded : ExitCode::failed;
}

}  // namespace

void add_bundle_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("bundle", "Write the cache's kernels into one file");
  const auto bundle = std::make_shared<BundleCommand>();
  command->add_option("output", bundle->output, "The file to write")->required();
  command
      ->add_option("--arch", bundle->filter.archs,
                   "Only kernels for these architectures or cards, e.g. sm_80,h200")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--kernel", bundle->filter.kernels,
                   "Only kernels of these names, as `attnjit ls` shows them")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_cache_places(*command, bundle->places);
  command->add_flag("--json", bundle->as_json, "Print one JSON document");
  command->callback([&action, bundle] { action = [bundle] { return run(*bundle); }; });
}

}  // namespace attnjit
