#include "refusal.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace attnjit::check {

std::string find_fault(const std::vector<Violation>& violations,
                       const std::vector<std::string>& fields) {
  bool names_one = false;
  for (const Violation& violation : violations) {
    if (violation.rule.empty() || violation.fix.empty()) {
      return fmt::format("refused without rule or fix: {}", to_string(violation));
    }
    names_one =
        names_one || std::find(fields.begin(), fields.end(), violation.field) != fields.end();
  }
  return names_one ? ""
                   : fmt::format("refused without naming what was changed: {}",
                                 to_string(std::span<const Violation>(violations)));
}

}  // namespace attnjit::check
