#include "model_source.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/shown_text.hpp"
#include "command.hpp"
#include "decode_source.hpp"
#include "edit_distance.hpp"

namespace attnjit {

extern const std::span<const EmbeddedFile> embedded_models;

namespace {

constexpr std::string_view extension = ".json";
constexpr std::size_t least_part = 3;  // characters that say which name they are a part of
constexpr std::size_t most_path_bytes = 400;

// Far above any config.json or descriptor, and little enough to hold and to parse.
constexpr std::size_t most_file_bytes = std::size_t{64} << 20;

constexpr std::string_view file_fix =
    "give the path of a config.json or descriptor, or a preset of `attnjit models`";

[[noreturn]] void refuse_file(const std::filesystem::path& path, std::string_view rule) {
  throw UsageError(
      fmt::format("{}: {}; fix: {}", shown_text(path.string(), most_path_bytes), rule, file_fix));
}

// Checked before it is opened: a FIFO would wait for a writer, a device never end.
void check_regular_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    refuse_file(path, "must be a regular file, not a directory, pipe or device");
  }
}

std::string read_file(std::filesystem::path path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    path /= "config.json";
  }
  check_regular_file(path);
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::string block(std::size_t{1} << 16, '\0');
  while (file && text.size() <= most_file_bytes) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block, 0, static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    refuse_file(path, "cannot be read");
  }
  if (text.size() > most_file_bytes) {
    refuse_file(path, fmt::format("must be at most {} MiB", most_file_bytes >> 20));
  }
  return text;
}

}  // namespace

std::span<const EmbeddedFile> model_presets() {
  return embedded_models;
}

bool names_file(std::string_view model) {
  return model.find('/') != std::string_view::npos || model.ends_with(extension);
}

std::string_view preset_name(const EmbeddedFile& preset) {
  return preset.name.substr(0, preset.name.size() - extension.size());
}

std::vector<std::string_view> near_presets(std::string_view name) {
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const EmbeddedFile& preset : model_presets()) {
    const std::string_view candidate = preset_name(preset);
    const bool is_part =
        name.size() >= least_part && candidate.find(name) != std::string_view::npos;
    const std::size_t distance = is_part ? 0 : edit_distance(name, candidate);
    if (distance <= std::min(candidate.size(), name.size()) / 3) {
      ranked.emplace_back(distance, candidate);
    }
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string_view> names;
  for (const auto& [distance, candidate] : ranked) {
    names.push_back(candidate);
  }
  names.resize(std::min<std::size_t>(names.size(), 5));
  return names;
}

ModelPlan plan_model_source(const std::string& model, const PlanOptions& options) {
  const bool has_decode = std::find(options.phases.begin(), options.phases.end(), Phase::decode) !=
                          options.phases.end();
  refuse_option(!has_decode && options.max_seqlen_q != PlanOptions{}.max_seqlen_q, "--max-seqlen-q",
                "prefills alone, which take any number of query tokens");
  const std::string config_json = read_model_source(model);
  try {
    return plan_model(config_json, options);
  } catch (const ModelError& error) {
    throw ModelError(fmt::format("{}: {}", shown_text(model, most_path_bytes), error.what()));
  }
}

std::string read_model_source(const std::string& model) {
  if (names_file(model)) {
    return read_file(model);
  }
  for (const EmbeddedFile& preset : model_presets()) {
    if (preset_name(preset) == model) {
      return std::string(preset.text);
    }
  }
  const std::vector<std::string_view> near = near_presets(model);
  throw UsageError(fmt::format(
      "\"{}\" is not a preset{}; fix: choose one of `attnjit models`, or give the path of a "
      "config.json",
      shown_text(model),
      near.empty() ? "" : fmt::format(", near ones are {}", fmt::join(near, ", "))));
}

}  // namespace attnjit
