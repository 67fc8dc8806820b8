#include "attnjit/descriptor_json.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/shown_text.hpp"
#include "enum_names.hpp"
#include "json_text.hpp"

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

// Deeper than any descriptor, and shallow enough to print whatever was given.
constexpr int deepest_nesting = 8;

std::string shown(const nlohmann::json& value) {
  return shown_text(value.dump());
}

// Signed and unsigned apart: comparing across the two would let 2^64 - 1 pass for -1.
bool fits_in_31_bits(const nlohmann::json& json) {
  constexpr int largest = std::numeric_limits<int>::max();
  if (json.is_number_unsigned()) {
    return json.get<std::uint64_t>() <= static_cast<std::uint64_t>(largest);
  }
  return json.is_number_integer() && json.get<std::int64_t>() >= -largest &&
         json.get<std::int64_t>() <= largest;
}

// Reads one member, or says what is wrong with it.
template <typename Value>
void read_member(const std::string& name, const nlohmann::json& json, Value& member,
                 std::vector<Violation>& violations) {
  if constexpr (std::is_enum_v<Value>) {
    const std::string text = json.is_string() ? json.get<std::string>() : std::string();
    if (const auto parsed = parse_enumerator<Value>(text)) {
      member = *parsed;
      return;
    }
    violations.push_back(
        {name, shown(json),
         fmt::format("must be one of {}", fmt::join(enumerator_names<Value>(), ", ")),
         "use one of these names"});
  } else if constexpr (std::is_same_v<Value, bool>) {
    if (json.is_boolean()) {
      member = json.get<bool>();
      return;
    }
    violations.push_back({name, shown(json), "must be true or false", "give a JSON boolean"});
  } else {
    static_assert(std::is_same_v<Value, int>);
    if (fits_in_31_bits(json)) {
      member = json.get<int>();
      return;
    }
    violations.push_back({name, shown(json), "must be an integer of at most 31 bits",
                          "give a whole number without quotes or fraction"});
  }
}

std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names;
  const AttentionDescriptor descriptor;
  for_each_field(descriptor, [&](const char* name, const auto&) { names.emplace_back(name); });
  return names;
}

constexpr const char* object_fix = "give one JSON object, e.g. {\"operation\": \"decode\"}";

// What the parser refused, as a violation of the field it was reading.
Violation to_violation(const JsonTextError& error) {
  const std::string field = error.field().empty() ? "descriptor" : shown_text(error.field());
  switch (error.fault()) {
    case JsonFault::nested_too_deeply:
      return {field, "", "is nested too deeply", "give a number, name or boolean"};
    case JsonFault::number_out_of_range:
      return {field, "", fmt::format("is out of range: {}", error.what()),
              "give an integer of at most 31 bits"};
    case JsonFault::malformed:
      break;
  }
  return {"descriptor", "", fmt::format("is not JSON: {}", error.what()), object_fix};
}

ParsedJson parse_object(std::string_view text) {
  try {
    ParsedJson parsed = parse_json_text(text, deepest_nesting);
    if (!parsed.value.is_object()) {
      throw DescriptorError(
          {{"descriptor", parsed.value.type_name(), "must be a JSON object", object_fix}});
    }
    return parsed;
  } catch (const JsonTextError& error) {
    throw DescriptorError({to_violation(error)});
  }
}

}  // namespace

std::string to_json(const AttentionDescriptor& descriptor) {
  Json json;
  for_each_field(descriptor,
                 [&](const char* name, const auto& member) { json[name] = value_to_json(member); });
  return json.dump();
}

AttentionDescriptor descriptor_from_json(std::string_view text) {
  const ParsedJson parsed = parse_object(text);
  const nlohmann::json& json = parsed.value;
  AttentionDescriptor descriptor;
  std::vector<Violation> violations;
  for (const std::string& field : parsed.repeated) {
    violations.push_back(
        {shown_text(field), "", "is given more than once", "give each field once"});
  }
  for_each_field(descriptor, [&](const char* name, auto& member) {
    if (json.contains(name)) {
      read_member(name, json[name], member, violations);
    }
  });
  const std::vector<std::string_view> names = field_names();
  for (const auto& [name, value] : json.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      violations.push_back({shown_text(name), shown(value), "is not a field of a descriptor",
                            fmt::format("remove it, or use one of {}", fmt::join(names, ", "))});
    }
  }
  if (!violations.empty()) {
    throw DescriptorError(std::move(violations));
  }
  return descriptor;
}

}  // namespace attnjit
