// config.json as an object that remembers which of its fields were asked for: what is left over is
// what the readers did not understand. First step of config.json -> ModelPlan. Private; one object
// belongs to one thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

// The legal values of an integer field.
struct IntegerRange {
  long long smallest = 1;
  long long largest = 1 << 20;
};

// A JSON object. Every getter marks its field as read. A field that is null counts as absent, which
// is how Hugging Face writes "off". A value of the wrong type or out of range throws ModelError.
class ConfigObject {
 public:
  ConfigObject(nlohmann::json object, std::string path);

  std::optional<int> integer(std::string_view name, IntegerRange range = {}) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<bool> boolean(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  std::optional<std::vector<std::string>> texts(std::string_view name) const;
  std::optional<std::vector<int>> integers(std::string_view name, IntegerRange range) const;
  std::optional<ConfigObject> object(std::string_view name) const;
  std::optional<std::vector<ConfigObject>> objects(std::string_view name) const;

  // As integer(), but absence throws ModelError.
  int required_integer(std::string_view name, IntegerRange range = {}) const;

  // True if the field is there at all, null included.
  bool mentions(std::string_view name) const;

  // The dotted name of a field, as messages show it: "text_config.head_dim".
  std::string path_of(std::string_view name) const;

  const nlohmann::json& fields() const { return object_; }
  const std::set<std::string, std::less<>>& names_read() const { return names_read_; }

 private:
  const nlohmann::json* find(std::string_view name) const;
  const nlohmann::json* find_array(std::string_view name) const;
  [[noreturn]] void reject(std::string_view name, const nlohmann::json& value,
                           const std::string& allowed) const;
  int to_integer(std::string_view name, const nlohmann::json& value, IntegerRange range) const;

  nlohmann::json object_;
  std::string path_;
  mutable std::set<std::string, std::less<>> names_read_;
};

// The language model's part of a config.json: the whole of it, or the text_config (language_config,
// llm_config) of a multimodal model, with the model_type that decides how it is read.
struct ModelConfig {
  ConfigObject whole;
  ConfigObject language;
  bool is_nested;
  std::string model_type;
};

// Throws ModelError for malformed JSON and where no model_type is found.
ModelConfig parse_model_config(std::string_view config_json);

}  // namespace attnjit
