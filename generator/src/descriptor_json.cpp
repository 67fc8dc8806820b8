#include "attnjit/descriptor_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/shown_text.hpp"
#include "json_member.hpp"
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

// Of unknown fields the first are told, and how many more there are: an error stays readable, and
// small, whatever was given.
constexpr std::size_t most_unknown = 20;

void add_unknown_fields(const nlohmann::json& json, std::vector<Violation>& violations) {
  const std::vector<std::string_view> names = field_names();
  std::size_t unknown = 0;
  for (const auto& [name, value] : json.items()) {
    const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
    if (!is_known && unknown++ < most_unknown) {
      violations.push_back({shown_text(name), shown_json(value), "is not a field of a descriptor",
                            fmt::format("remove it, or use one of {}", fmt::join(names, ", "))});
    }
  }
  if (unknown > most_unknown) {
    violations.push_back({"descriptor", fmt::format("{} unknown fields", unknown),
                          fmt::format("the first {} are told above", most_unknown),
                          "remove them all"});
  }
}

}  // namespace

std::string to_json(const AttentionDescriptor& descriptor) {
  Json json;
  for_each_field(descriptor,
                 [&](const char* name, const auto& member) { json[name] = value_to_json(member); });
  // Text that is no UTF-8 is refused by the rules; until then it can be shown.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
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
      read_json_member(name, json[name], member, violations);
    }
  });
  add_unknown_fields(json, violations);
  if (!violations.empty()) {
    throw DescriptorError(std::move(violations));
  }
  return descriptor;
}

}  // namespace attnjit
