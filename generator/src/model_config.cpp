#include "model_config.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "attnjit/model_plan.hpp"
#include "attnjit/shown_text.hpp"
#include "json_text.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

// Deeper than any published config.json, and shallow enough to walk whatever was given.
constexpr int deepest_nesting = 32;

constexpr const char* give_as_published = "give the file as published";

std::string shown(const json& value) {
  return shown_text(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

[[noreturn]] void throw_refused(const JsonTextError& error) {
  if (error.fault() == JsonFault::nested_too_deeply) {
    throw ModelError(fmt::format("{} is nested too deeply: must be at most {} levels deep; fix: {}",
                                 error.field().empty() ? "config.json" : shown_text(error.field()),
                                 deepest_nesting, give_as_published));
  }
  throw ModelError(
      fmt::format("config.json is not JSON: {}; fix: {}", error.what(), give_as_published));
}

// Of a key given twice JSON would silently keep the last value.
void check_repeated(const std::vector<std::string>& repeated) {
  std::string text;
  for (const std::string& field : repeated) {
    text += text.empty() ? "" : "\n";
    text += fmt::format("{} is given more than once: must be given once; fix: remove the wrong one",
                        shown_text(field));
  }
  if (!text.empty()) {
    throw ModelError(text);
  }
}

json parse_object(std::string_view config_json) {
  try {
    ParsedJson parsed = parse_json_text(config_json, deepest_nesting);
    check_repeated(parsed.repeated);
    if (!parsed.value.is_object()) {
      throw ModelError(fmt::format(
          "config.json = {}: must be a JSON object; fix: give the model's config.json, not its "
          "tokenizer or index file",
          shown(parsed.value)));
    }
    return std::move(parsed.value);
  } catch (const JsonTextError& error) {
    throw_refused(error);
  }
}

// Multimodal models put their language model under one of these names.
constexpr std::array language_fields = {"text_config", "language_config", "llm_config"};

// Wrappers whose nested configuration may omit model_type.
std::string language_type_of_wrapper(const std::string& model_type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> nested = {
      {{"gemma3", "gemma3_text"}, {"llama4", "llama4_text"}, {"kimi_k25", "kimi_k2"}}};
  for (const auto& [wrapper, language] : nested) {
    if (model_type == wrapper) {
      return std::string(language);
    }
  }
  return model_type;
}

}  // namespace

ConfigObject::ConfigObject(json object, std::string path)
    : object_(std::move(object)), path_(std::move(path)) {}

std::string ConfigObject::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

bool ConfigObject::mentions(std::string_view name) const {
  return object_.contains(name);
}

const json* ConfigObject::find(std::string_view name) const {
  names_read_.emplace(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigObject::reject(std::string_view name, const json& value,
                          const std::string& allowed) const {
  throw ModelError(fmt::format("{} = {}: must be {}; fix: correct the field in config.json",
                               path_of(name), shown(value), allowed));
}

int ConfigObject::to_integer(std::string_view name, const json& value, IntegerRange range) const {
  const std::string allowed =
      fmt::format("an integer from {} to {}", range.smallest, range.largest);
  if (!value.is_number_integer()) {
    reject(name, value, allowed);
  }
  // An unsigned value past the signed range would wrap around if it were read as signed.
  const bool is_huge =
      value.is_number_unsigned() &&
      value.get<unsigned long long>() > static_cast<unsigned long long>(range.largest);
  if (is_huge || value.get<long long>() < range.smallest ||
      value.get<long long>() > range.largest) {
    reject(name, value, allowed);
  }
  return static_cast<int>(value.get<long long>());
}

std::optional<int> ConfigObject::integer(std::string_view name, IntegerRange range) const {
  const json* value = find(name);
  return value ? std::optional(to_integer(name, *value, range)) : std::nullopt;
}

int ConfigObject::required_integer(std::string_view name, IntegerRange range) const {
  const std::optional<int> value = integer(name, range);
  if (!value) {
    throw ModelError(fmt::format(
        "{} is missing: must be an integer from {} to {}; fix: add the field, as in the model's "
        "published config.json",
        path_of(name), range.smallest, range.largest));
  }
  return *value;
}

std::optional<double> ConfigObject::number(std::string_view name) const {
  const json* value = find(name);
  if (!value) {
    return std::nullopt;
  }
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    reject(name, *value, "a finite number");
  }
  return value->get<double>();
}

std::optional<bool> ConfigObject::boolean(std::string_view name) const {
  const json* value = find(name);
  if (!value) {
    return std::nullopt;
  }
  if (!value->is_boolean()) {
    reject(name, *value, "true or false");
  }
  return value->get<bool>();
}

std::optional<std::string> ConfigObject::text(std::string_view name) const {
  const json* value = find(name);
  if (!value) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    reject(name, *value, "a string");
  }
  return value->get<std::string>();
}

const json* ConfigObject::find_array(std::string_view name) const {
  const json* value = find(name);
  if (value && !value->is_array()) {
    reject(name, *value, "an array");
  }
  return value;
}

std::optional<std::vector<std::string>> ConfigObject::texts(std::string_view name) const {
  const json* value = find_array(name);
  if (!value) {
    return std::nullopt;
  }
  std::vector<std::string> texts;
  for (const json& element : *value) {
    if (!element.is_string()) {
      reject(name, *value, "an array of strings");
    }
    texts.push_back(element.get<std::string>());
  }
  return texts;
}

std::optional<std::vector<int>> ConfigObject::integers(std::string_view name,
                                                       IntegerRange range) const {
  const json* value = find_array(name);
  if (!value) {
    return std::nullopt;
  }
  std::vector<int> integers;
  for (const json& element : *value) {
    integers.push_back(to_integer(name, element, range));
  }
  return integers;
}

std::optional<ConfigObject> ConfigObject::object(std::string_view name) const {
  const json* value = find(name);
  if (!value) {
    return std::nullopt;
  }
  if (!value->is_object()) {
    reject(name, *value, "an object");
  }
  return ConfigObject(*value, path_of(name));
}

std::optional<std::vector<ConfigObject>> ConfigObject::objects(std::string_view name) const {
  const json* value = find_array(name);
  if (!value) {
    return std::nullopt;
  }
  std::vector<ConfigObject> objects;
  for (const json& element : *value) {
    if (!element.is_object()) {
      reject(name, *value, "an array of objects");
    }
    objects.emplace_back(element, fmt::format("{}[{}]", path_of(name), objects.size()));
  }
  return objects;
}

ModelConfig parse_model_config(std::string_view config_json) {
  ConfigObject whole(parse_object(config_json), "");
  std::optional<std::string> model_type = whole.text("model_type");
  std::optional<ConfigObject> language;
  for (const char* field : language_fields) {
    if (!language) {
      language = whole.object(field);
    }
  }
  if (language) {
    const std::optional<std::string> nested_type = language->text("model_type");
    model_type = nested_type ? nested_type : model_type;
  }
  if (!model_type) {
    throw ModelError(
        "model_type is missing: it names the architecture that config.json describes; fix: give "
        "the model's published config.json");
  }
  const std::string language_type = language_type_of_wrapper(*model_type);
  const bool is_nested = language.has_value();
  ConfigObject reader = is_nested ? std::move(*language) : whole;
  return {std::move(whole), std::move(reader), is_nested, language_type};
}

}  // namespace attnjit
