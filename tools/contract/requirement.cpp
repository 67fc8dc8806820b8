#include "requirement.hpp"

namespace attnjit::contract {

std::string_view to_string(Proof proof) {
  switch (proof) {
    case Proof::reference:
      return "reference";
    case Proof::equal_bits:
      return "bits equal";
    case Proof::refusal:
      return "refused";
    case Proof::property:
      return "holds";
  }
  return "";
}

bool matches_glob(std::string_view pattern, std::string_view id) {
  if (pattern.empty()) {
    return id.empty();
  }
  if (pattern.front() == '*') {
    return matches_glob(pattern.substr(1), id) ||
           (!id.empty() && matches_glob(pattern, id.substr(1)));
  }
  return !id.empty() && (pattern.front() == '?' || pattern.front() == id.front()) &&
         matches_glob(pattern.substr(1), id.substr(1));
}

}  // namespace attnjit::contract
