// attnjit models: the presets, and where the values of each come from.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "model_source.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

json describe_preset(const EmbeddedFile& preset) {
  const json config = json::parse(preset.text);
  return {{"name", preset_name(preset)},
          {"model_type", config.at("model_type")},
          {"source", config.at("_source")}};
}

ExitCode run(bool as_json) {
  json models = json::array();
  for (const EmbeddedFile& preset : model_presets()) {
    models.push_back(describe_preset(preset));
  }
  if (as_json) {
    print_result("{}\n", json{{"schema", 1}, {"models", models}}.dump());
    return ExitCode::succeeded;
  }
  for (const json& model : models) {
    print_result("{:<20} {:<14} {}\n", model.at("name").get<std::string>(),
                 model.at("model_type").get<std::string>(), model.at("source").get<std::string>());
  }
  return ExitCode::succeeded;
}

}  // namespace

void add_models_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("models", "List the model presets");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print one JSON document");
  command->callback([&action, as_json] { action = [as_json] { return run(*as_json); }; });
}

}  // namespace attnjit
