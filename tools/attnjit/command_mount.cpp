// attnjit mount: examines bundles and directories as layers, and prints the setting that mounts
// them.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/cache_layer.hpp"
#include "attnjit/shown_text.hpp"
#include "cache_places.hpp"
#include "command.hpp"
#include "json_document.hpp"
#include "standard_streams.hpp"

#include "given_words.hpp"
namespace attnjit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct MountCommand {
  std::vector<fs::path> layers;
  bool as_json = false;
};

void require_usable(const CacheLayer& layer) {
  const std::string path = layer.path().string();
  if (path.find(':') != std::string::npos) {
    throw UsageError(
        fmt::format("layer = {}: a colon separates layers; fix: rename it", shown_text(path)));
  }
  const LayerState state = layer.state();
  if (state.kind == LayerKind::missing || state.kind == LayerKind::unusable) {
    throw UsageError(fmt::format(
        "layer = {}: {}; fix: name a bundle that `attnjit bundle` wrote, or a cache directory",
        shown_text(path), state.problem));
  }
}

// For a POSIX shell: nothing in single quotes but they themselves is special.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char character : text) {
    quoted += character == '\'' ? "'\\''" : std::string(1, character);
  }
  return quoted + "'";
}

ExitCode run(const MountCommand& command) {
  std::string value;
  Json layers = Json::array();
  for (const fs::path& path : command.layers) {
    require_path(path, "layer");
    const CacheLayer layer(fs::absolute(path));
    require_usable(layer);
    const std::size_t entries = layer.list().size();
    value += (value.empty() ? "" : ":") + layer.path().string();
    Json mounted;
    set_path(mounted, "path", layer.path());
    mounted.update({{"kind", to_string(layer.state().kind)}, {"entries", entries}});
    layers.push_back(std::move(mounted));
    print_message("attnjit: {}: {}, {} entries\n", layer.path().string(),
                  to_string(layer.state().kind), entries);
  }
  if (command.as_json) {
    Json environment;
    set_path(environment, "ATTNJIT_CACHE_LAYERS", value);
    Json document = {{"schema", 1},
                     {"command", "mount"},
                     {"layers", std::move(layers)},
                     {"environment", std::move(environment)}};
    print_result("{}\n", to_line(std::move(document)));
  } else {
    print_result("export ATTNJIT_CACHE_LAYERS={}\n", shell_quoted(value));
  }
  return ExitCode::succeeded;
}

}  // namespace

void add_mount_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand(
      "mount", "Examine bundles or directories as layers, print the setting that mounts them");
  const auto mount = std::make_shared<MountCommand>();
  add_texts(
      *command, "layer",
      [mount](const std::vector<std::string>& paths) {
        mount->layers.assign(paths.begin(), paths.end());
      },
      "Bundles or cache directories, in order");
  command->get_option("layer")->required();
  command->add_flag("--json", mount->as_json, "Print one JSON document");
  command->callback([&action, mount] { action = [mount] { return run(*mount); }; });
}

}  // namespace attnjit
