// Where a command gets a model's config.json from: a file, or a preset built into the binary
// (tools/models). Thread-safe; texts of presets live as long as the program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/embedded_file.hpp"

namespace attnjit {

// The presets, sorted by file name ("deepseek-v3.json").
std::span<const EmbeddedFile> model_presets();

// "deepseek-v3.json" -> "deepseek-v3".
std::string_view preset_name(const EmbeddedFile& preset);

// The text of the config.json that `model` names: a path if it has a slash or ends in ".json" (a
// directory stands for the config.json in it), else a preset. Throws UsageError for an unknown
// preset, naming near ones, and for a file that cannot be read.
std::string read_model_source(const std::string& model);

// The presets whose names are near `name`, nearest first, at most five.
std::vector<std::string_view> near_presets(std::string_view name);

}  // namespace attnjit
