#include "model_source.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.hpp"
#include "edit_distance.hpp"

namespace attnjit {

extern const std::span<const EmbeddedFile> embedded_models;

namespace {

constexpr std::string_view extension = ".json";

std::string read_file(std::filesystem::path path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    path /= "config.json";
  }
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) {
    throw UsageError(fmt::format(
        "{}: cannot be read; fix: give the path of a config.json, or a preset of `attnjit models`",
        path.string()));
  }
  return text;
}

}  // namespace

std::span<const EmbeddedFile> model_presets() {
  return embedded_models;
}

std::string_view preset_name(const EmbeddedFile& preset) {
  return preset.name.substr(0, preset.name.size() - extension.size());
}

std::vector<std::string_view> near_presets(std::string_view name) {
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const EmbeddedFile& preset : model_presets()) {
    const std::string_view candidate = preset_name(preset);
    const bool is_part = !name.empty() && candidate.find(name) != std::string_view::npos;
    const std::size_t distance = is_part ? 0 : edit_distance(name, candidate);
    if (distance <= candidate.size() / 2) {
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

std::string read_model_source(const std::string& model) {
  if (model.find('/') != std::string::npos || std::string_view(model).ends_with(extension)) {
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
      model, near.empty() ? "" : fmt::format(", near ones are {}", fmt::join(near, ", "))));
}

}  // namespace attnjit
