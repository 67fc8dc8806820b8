#include "json_fields.hpp"

#include <fmt/format.h>

#include "attnjit/shown_text.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

constexpr int deepest_nesting = 16;

std::string name_in(const JsonObject& object, const std::string& name) {
  return object.place.empty() ? name : object.place + "." + name;
}

template <typename IsKind>
const Json& member(const JsonObject& object, const std::string& name, std::string_view kind,
                   std::string_view what, IsKind is_kind) {
  const auto found = object.json.find(name);
  if (found == object.json.end() || !is_kind(*found)) {
    refuse_field(object, name, fmt::format("must be {}, {}", kind, what));
  }
  return *found;
}

}  // namespace

Json parse_shallow_json(std::string_view text) {
  bool is_deep = false;
  const auto look = [&](int depth, auto, const auto&) {
    is_deep = is_deep || depth > deepest_nesting;
    return depth <= deepest_nesting;
  };
  Json json = Json::parse(text, look, /*allow_exceptions=*/false);
  return is_deep ? Json(Json::value_t::discarded) : json;
}

std::string shown_json(const Json& value) {
  return shown_text(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void refuse_field(const JsonObject& object, const std::string& name, std::string_view rule) {
  const auto found = object.json.find(name);
  throw JsonFieldError(fmt::format(
      "{}{}: {}; fix: {}", name_in(object, name),
      found == object.json.end() ? " is missing" : " = " + shown_json(*found), rule, object.fix));
}

std::string text_field(const JsonObject& object, const std::string& name, std::string_view what) {
  return member(object, name, "a text", what, [](const Json& json) { return json.is_string(); })
      .get<std::string>();
}

std::string key_field(const JsonObject& object, const std::string& name) {
  constexpr std::size_t digits = 32;
  std::string key = text_field(object, name, "32 hex digits");
  if (key.size() != digits || key.find_first_not_of("0123456789abcdef") != std::string::npos) {
    refuse_field(object, name, "must be 32 hex digits in lower case");
  }
  return key;
}

const Json& object_field(const JsonObject& object, const std::string& name, std::string_view what) {
  return member(object, name, "an object", what, [](const Json& json) { return json.is_object(); });
}

const Json& array_field(const JsonObject& object, const std::string& name, std::string_view what) {
  return member(object, name, "a list", what, [](const Json& json) { return json.is_array(); });
}

JsonObject element_of(const JsonObject& object, const std::string& name, std::size_t index,
                      std::string_view what) {
  const Json& element = object.json.at(name).at(index);
  std::string place = fmt::format("{}[{}]", name_in(object, name), index);
  if (!element.is_object()) {
    throw JsonFieldError(fmt::format("{} = {}: must be an object, {}; fix: {}", place,
                                     shown_json(element), what, object.fix));
  }
  return {element, std::move(place), object.fix};
}

}  // namespace attnjit
