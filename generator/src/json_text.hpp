// JSON text that a user gave -> a value that is safe to walk: nested no deeper than the reader can
// mean, with the keys named that JSON would silently overwrite. The first step of
// descriptor_from_json and of plan_model. Private; pure, thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

struct ParsedJson {
  nlohmann::json value;
  // Dotted names of the keys that their object holds more than once, in order; the first 20.
  std::vector<std::string> repeated;
};

enum class JsonFault { malformed, number_out_of_range, nested_too_deeply };

// what() is the parser's account, cut where it would flood a terminal.
class JsonTextError : public std::runtime_error {
 public:
  JsonTextError(JsonFault fault, std::string field, const std::string& message);
  JsonFault fault() const { return fault_; }
  // The dotted name of the field being read, "" before the first.
  const std::string& field() const { return field_; }

 private:
  JsonFault fault_;
  std::string field_;
};

// Throws JsonTextError. `deepest_nesting` counts objects and arrays within the outermost one.
ParsedJson parse_json_text(std::string_view text, int deepest_nesting);

}  // namespace attnjit
