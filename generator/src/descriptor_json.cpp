#include "attnjit/descriptor_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/descriptor_validation.hpp"
#include "enum_names.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json value_to_json(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return to_string(value);
  } else {
    return value;
  }
}

// Reads one member, or says what is wrong with it.
template <typename Value>
void read_member(const std::string& name, const Json& json, Value& member,
                 std::vector<Violation>& violations) {
  if constexpr (std::is_enum_v<Value>) {
    const std::string text = json.is_string() ? json.get<std::string>() : std::string();
    if (const auto parsed = parse_enumerator<Value>(text)) {
      member = *parsed;
      return;
    }
    violations.push_back(
        {name, json.dump(),
         fmt::format("must be one of {}", fmt::join(enumerator_names<Value>(), ", ")),
         "use one of these names"});
  } else if constexpr (std::is_same_v<Value, bool>) {
    if (json.is_boolean()) {
      member = json.get<bool>();
      return;
    }
    violations.push_back({name, json.dump(), "must be true or false", "give a JSON boolean"});
  } else {
    static_assert(std::is_same_v<Value, int>);
    // Compared as 64-bit: a number that does not fit in an int must not wrap into one that does.
    if (json.is_number_integer() && json >= Json(-2147483647) && json <= Json(2147483647)) {
      member = json.get<int>();
      return;
    }
    violations.push_back({name, json.dump(), "must be an integer of at most 31 bits",
                          "give a whole number without quotes or fraction"});
  }
}

std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names;
  const AttentionDescriptor descriptor;
  for_each_field(descriptor, [&](const char* name, const auto&) { names.emplace_back(name); });
  return names;
}

Json parse_object(std::string_view text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw DescriptorError({{"descriptor", "", fmt::format("is not JSON: {}", error.what()),
                            "give one JSON object, e.g. {\"operation\": \"decode\"}"}});
  }
  if (!json.is_object()) {
    throw DescriptorError({{"descriptor", json.type_name(), "must be a JSON object",
                            "give one JSON object, e.g. {\"operation\": \"decode\"}"}});
  }
  return json;
}

}  // namespace

std::string to_json(const AttentionDescriptor& descriptor) {
  Json json;
  for_each_field(descriptor,
                 [&](const char* name, const auto& member) { json[name] = value_to_json(member); });
  return json.dump();
}

AttentionDescriptor descriptor_from_json(std::string_view text) {
  const Json json = parse_object(text);
  AttentionDescriptor descriptor;
  std::vector<Violation> violations;
  for_each_field(descriptor, [&](const char* name, auto& member) {
    if (json.contains(name)) {
      read_member(name, json[name], member, violations);
    }
  });
  const std::vector<std::string_view> names = field_names();
  for (const auto& [name, value] : json.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      violations.push_back({name, value.dump(), "is not a field of a descriptor",
                            fmt::format("remove it, or use one of {}", fmt::join(names, ", "))});
    }
  }
  if (!violations.empty()) {
    throw DescriptorError(std::move(violations));
  }
  return descriptor;
}

}  // namespace attnjit
