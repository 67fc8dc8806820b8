// The result of `attnjit check` for people (a row per group, every failure, a closing line) or as
// JSON.
#pragma once

#include "check_run.hpp"

namespace attnjit {

void print_report(const CheckReport& report, bool as_json);

}  // namespace attnjit
