// Checked requirements for people: a row each, then every failure. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "contract_run.hpp"

namespace attnjit {

// A row per requirement: id, what is required, its cases, the worst error over its tolerance or how
// else it was shown, and whether it is met.
std::string format_requirements(const std::vector<CheckedRequirement>& checked);

// A line for each case that failed, and one with the command that runs its requirement again.
std::string format_failures(const CheckedRequirement& checked);

nlohmann::json to_json(const CheckedRequirement& checked);

}  // namespace attnjit
