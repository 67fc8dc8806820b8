#include "contract_report.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "text_table.hpp"

namespace attnjit {
namespace {

using contract::ContractCase;
using contract::Proof;
using nlohmann::json;

// Of an output, an LSE or the whole, over its tolerance.
double worst_excess(const check::CheckResult& result) {
  return std::max({result.comparison.worst_excess, result.comparison.worst_lse_excess,
                   result.cosine_distance / check::Tolerance().cosine_distance});
}

// "0.42, refused": the worst of what was compared, then how else cases were shown.
std::string describe_proof(const CheckedRequirement& checked) {
  const std::vector<ContractCase>& cases = checked.requirement.cases;
  std::vector<std::string> parts;
  for (const Proof proof : {Proof::reference, Proof::equal_bits, Proof::refusal, Proof::property}) {
    double worst = 0;
    bool has_any = false;
    bool passes = true;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (cases[i].proof == proof) {
        has_any = true;
        passes = passes && checked.results[i].passed;
        worst = std::max(worst, worst_excess(checked.results[i]));
      }
    }
    if (has_any && proof == Proof::reference) {
      parts.push_back(fmt::format("{:.2f}", worst));
    } else if (has_any) {
      parts.push_back(fmt::format("{}{}", passes ? "" : "not ", to_string(proof)));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string describe_names(const std::vector<ContractCase>& cases) {
  if (cases.empty()) {
    return "";
  }
  return cases.size() == 1 ? cases.front().name
                           : fmt::format("{} … {}", cases.front().name, cases.back().name);
}

std::string describe_verdict(const CheckedRequirement& checked) {
  const std::string& missing = checked.requirement.not_covered;
  if (!missing.empty()) {
    return fmt::format("FAIL, not covered: {}", missing);
  }
  return is_met(checked) ? "pass" : "FAIL";
}

std::string command_for(const contract::Requirement& requirement) {
  return fmt::format("attnjit check --suite contract --filter '{}'", requirement.id);
}

}  // namespace

std::string format_requirements(const std::vector<CheckedRequirement>& checked) {
  constexpr std::array<TableColumn, 6> columns = {{{"id"},
                                                   {"required"},
                                                   {"cases", Alignment::right},
                                                   {"from … to"},
                                                   {"error / tolerance"},
                                                   {"result"}}};
  std::vector<std::vector<std::string>> rows;
  for (const CheckedRequirement& each : checked) {
    const contract::Requirement& requirement = each.requirement;
    rows.push_back({requirement.id, requirement.sentence,
                    fmt::format("{}", requirement.cases.size()), describe_names(requirement.cases),
                    describe_proof(each), describe_verdict(each)});
  }
  return format_table(columns, rows);
}

std::string format_failures(const CheckedRequirement& checked) {
  std::string text;
  for (std::size_t i = 0; i < checked.results.size(); ++i) {
    if (!checked.results[i].passed) {
      text += fmt::format("failed: {}: {}: {}\n", checked.requirement.id,
                          checked.requirement.cases[i].name, checked.results[i].failure);
    }
  }
  return text.empty() ? text
                      : text + fmt::format("  again: {}\n", command_for(checked.requirement));
}

json to_json(const CheckedRequirement& checked) {
  json cases = json::array();
  for (std::size_t i = 0; i < checked.results.size(); ++i) {
    const ContractCase& each = checked.requirement.cases[i];
    const check::CheckResult& result = checked.results[i];
    cases.push_back({{"case", each.name},
                     {"shown_by", to_string(each.proof)},
                     {"passed", result.passed},
                     {"failure", result.failure},
                     {"worst_error_over_tolerance", result.comparison.worst_excess},
                     {"worst_lse_error_over_tolerance", result.comparison.worst_lse_excess},
                     {"cosine_distance", result.cosine_distance}});
  }
  return {{"id", checked.requirement.id},
          {"required", checked.requirement.sentence},
          {"not_covered", checked.requirement.not_covered},
          {"passed", is_met(checked)},
          {"command", command_for(checked.requirement)},
          {"cases", std::move(cases)}};
}

}  // namespace attnjit
