// One member of a JSON object -> a number, boolean, text or enumerator, or the violation that says
// what it must be. Private; pure, thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/shown_text.hpp"
#include "enum_names.hpp"

namespace attnjit {

inline std::string shown_json(const nlohmann::json& value) {
  return shown_text(value.dump());
}

// Signed and unsigned apart: comparing across the two would let 2^64 - 1 pass for -1.
inline bool fits_in_31_bits(const nlohmann::json& json) {
  constexpr int largest = std::numeric_limits<int>::max();
  if (json.is_number_unsigned()) {
    return json.get<std::uint64_t>() <= static_cast<std::uint64_t>(largest);
  }
  return json.is_number_integer() && json.get<std::int64_t>() >= -largest &&
         json.get<std::int64_t>() <= largest;
}

// Reads one member, or says what is wrong with it.
template <typename Value>
void read_json_member(const std::string& name, const nlohmann::json& json, Value& member,
                      std::vector<Violation>& violations) {
  if constexpr (std::is_enum_v<Value>) {
    const std::string text = json.is_string() ? json.get<std::string>() : std::string();
    if (const auto parsed = parse_enumerator<Value>(text)) {
      member = *parsed;
      return;
    }
    violations.push_back(
        {name, shown_json(json),
         fmt::format("must be one of {}", fmt::join(enumerator_names<Value>(), ", ")),
         "use one of these names"});
  } else if constexpr (std::is_same_v<Value, bool>) {
    if (json.is_boolean()) {
      member = json.get<bool>();
      return;
    }
    violations.push_back({name, shown_json(json), "must be true or false", "give a JSON boolean"});
  } else if constexpr (std::is_same_v<Value, std::string>) {
    if (json.is_string()) {
      member = json.get<std::string>();
      return;
    }
    violations.push_back({name, shown_json(json), "must be a text", "give a JSON string"});
  } else {
    static_assert(std::is_same_v<Value, int>);
    if (fits_in_31_bits(json)) {
      member = json.get<int>();
      return;
    }
    violations.push_back({name, shown_json(json), "must be an integer of at most 31 bits",
                          "give a whole number without quotes or fraction"});
  }
}

}  // namespace attnjit
