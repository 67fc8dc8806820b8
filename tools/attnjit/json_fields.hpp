// Members of JSON that a user gave, read one by one; what is wrong is told by field, value, what is
// allowed and the fix, never in the parser's words. Pure; thread-safe.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace attnjit {

class JsonFieldError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An object whose members are read: where it stands ("kernels[3]", "" for the outermost) and the
// way out that every message ends with.
struct JsonObject {
  const nlohmann::ordered_json& json;
  std::string place;
  std::string fix;
};

// The value of `text`; discarded for what is no JSON, or nested deeper than any document of ours.
nlohmann::ordered_json parse_shallow_json(std::string_view text);

// A value on one line, cut where it is long.
std::string shown_json(const nlohmann::ordered_json& value);

// Throws JsonFieldError about the member `name`, which breaks `rule` ("must be a text"), or is
// missing.
[[noreturn]] void refuse_field(const JsonObject& object, const std::string& name,
                               std::string_view rule);

// The member of that name and kind; throws JsonFieldError where there is none.
std::string text_field(const JsonObject& object, const std::string& name, std::string_view what);
std::string key_field(const JsonObject& object, const std::string& name);  // of the cache
const nlohmann::ordered_json& object_field(const JsonObject& object, const std::string& name,
                                           std::string_view what);
const nlohmann::ordered_json& array_field(const JsonObject& object, const std::string& name,
                                          std::string_view what);

// The element `index` of the array that the member `name` of `object` is: an object too.
JsonObject element_of(const JsonObject& object, const std::string& name, std::size_t index,
                      std::string_view what);

}  // namespace attnjit
