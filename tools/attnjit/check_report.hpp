// The result of `attnjit check` for people (a row per group, every failure, a closing line) or as
// JSON.
#pragma once

#include <string>

#include "check_run.hpp"

namespace attnjit {

// A line for a case that failed, and one with the command that runs it again, if there is one.
std::string format_failure(const CheckedCase& checked);

void print_report(const CheckReport& report, bool as_json);

}  // namespace attnjit
