// Where a command gets a model's config.json from: a file, or a preset built into the binary
// (tools/models). Thread-safe; texts of presets live as long as the program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/embedded_file.hpp"
#include "attnjit/model_plan.hpp"

namespace attnjit {

// The presets, sorted by file name ("deepseek-v3.json").
std::span<const EmbeddedFile> model_presets();

// "deepseek-v3.json" -> "deepseek-v3".
std::string_view preset_name(const EmbeddedFile& preset);

// True for a path, which has a slash or ends in ".json"; else `model` is to be a preset.
bool names_file(std::string_view model);

// The text of the config.json that `model` names: a path (a directory stands for the config.json in
// it) or a preset. Throws UsageError for an unknown
// preset, naming near ones, and for what is no regular file, cannot be read or is over 64 MiB.
std::string read_model_source(const std::string& model);

// plan_model of the model that `model` names; its ModelError names `model` first. Throws UsageError
// too for what options say of a phase that is not asked for.
ModelPlan plan_model_source(const std::string& model, const PlanOptions& options);

// The presets whose names are near `name`, nearest first, at most five.
std::vector<std::string_view> near_presets(std::string_view name);

}  // namespace attnjit
