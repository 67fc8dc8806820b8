// Another value of any field's type, for tests that change every field in turn. Pure.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "attnjit/kernel_config.hpp"
#include "attnjit/mask_formula.hpp"

namespace attnjit::test {

// The names of an enumeration: its enumerators run from 0 without gaps.
template <typename Enum>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  while (!to_string(static_cast<Enum>(names.size())).empty()) {
    names.emplace_back(to_string(static_cast<Enum>(names.size())));
  }
  return names;
}

template <typename Value>
Value another(Value value) {
  if constexpr (std::is_enum_v<Value>) {
    const Value next = static_cast<Value>(static_cast<int>(value) + 1);
    return to_string(next).empty() ? Value{} : next;
  } else if constexpr (std::is_same_v<Value, bool>) {
    return !value;
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return value + "q";
  } else if constexpr (std::is_same_v<Value, MaskFormula>) {
    value.clauses.push_back(mask_bit(MaskKind::causal) | mask_bit(MaskKind::document));
    return value;
  } else {
    return value + 1;
  }
}

// `fields` with only the field called `name` changed.
template <typename Fields>
Fields with_another(Fields fields, std::string_view name) {
  for_each_field(std::as_const(fields), [&](std::string_view field, const auto& member, auto&&...) {
    if (field == name) {
      using Member = std::remove_cvref_t<decltype(member)>;
      const_cast<Member&>(member) = another(member);
    }
  });
  return fields;
}

template <typename Fields>
std::vector<std::string> field_names(const Fields& fields) {
  std::vector<std::string> names;
  for_each_field(fields,
                 [&](const char* name, const auto&, auto&&...) { names.emplace_back(name); });
  return names;
}

}  // namespace attnjit::test
