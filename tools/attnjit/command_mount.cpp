// attnjit mount: examines bundles and directories as layers, and prints the setting that mounts
// them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/cache_layer.hpp"
#include "attnjit/shown_text.hpp"
#include "cache_places.hpp"
#include "command.hpp"
#include "given_words.hpp"
#include "json_document.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct MountCommand {
  std::vector<fs::path> layers;
  bool as_json = false;
};

void require_mountable(const CacheLayer& layer) {
  const std::string path = layer.path().string();
  if (path.find(':') != std::string::npos) {
    throw UsageError(
        fmt::format("layer = {}: a colon separates layers; fix: rename it", shown_text(path)));
  }
  require_usable(layer, "layer");
  const LayerState state = layer.state();
  if (state.file_bytes != state.expected_bytes) {
    throw UsageError(fmt::format(
        "layer = {}: {}: expected by its index are {} bytes, and it has {}; fix: copy the bundle "
        "again, or take over what is whole with `attnjit import`",
        shown_text(path), state.file_bytes < state.expected_bytes ? "is cut off" : "was lengthened",
        state.expected_bytes, state.file_bytes));
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
  std::vector<fs::path> paths;
  std::transform(command.layers.begin(), command.layers.end(), std::back_inserter(paths),
                 [](const fs::path& path) { return fs::absolute(path); });
  for (const fs::path& path : distinct_layers(std::nullopt, paths)) {
    const CacheLayer layer(path);
    require_mountable(layer);
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
