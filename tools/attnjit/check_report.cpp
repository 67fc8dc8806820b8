#include "check_report.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/descriptor_json.hpp"
#include "contract_report.hpp"
#include "standard_streams.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

struct GroupSummary {
  std::string name;
  int num_cases = 0;
  int num_failed = 0;
  check::Comparison worst = {};  // the largest of each error
  double cosine_distance = 0;
};

std::vector<GroupSummary> summarize(const CheckReport& report) {
  std::vector<GroupSummary> groups;
  for (const CheckedCase& checked : report.cases) {
    const std::string& name = group_of(checked.check_case);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const GroupSummary& known) { return known.name == name; });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), GroupSummary{.name = name});
    }
    const check::Comparison& comparison = checked.result.comparison;
    ++group->num_cases;
    group->num_failed += checked.result.passed ? 0 : 1;
    check::Comparison& worst = group->worst;
    worst.worst_error = std::max(worst.worst_error, comparison.worst_error);
    worst.worst_excess = std::max(worst.worst_excess, comparison.worst_excess);
    worst.worst_lse_error = std::max(worst.worst_lse_error, comparison.worst_lse_error);
    worst.worst_lse_excess = std::max(worst.worst_lse_excess, comparison.worst_lse_excess);
    group->cosine_distance = std::max(group->cosine_distance, checked.result.cosine_distance);
  }
  return groups;
}

void print_table(const CheckReport& report) {
  constexpr std::array<TableColumn, 8> columns = {{{"group"},
                                                   {"cases", Alignment::right},
                                                   {"failed", Alignment::right},
                                                   {"worst |error|", Alignment::right},
                                                   {"/ tolerance", Alignment::right},
                                                   {"worst LSE error", Alignment::right},
                                                   {"/ tolerance", Alignment::right},
                                                   {"cosine distance", Alignment::right}}};
  std::vector<std::vector<std::string>> rows;
  for (const GroupSummary& group : summarize(report)) {
    rows.push_back({group.name, fmt::format("{}", group.num_cases),
                    fmt::format("{}", group.num_failed),
                    fmt::format("{:.2e}", group.worst.worst_error),
                    fmt::format("{:.2f}", group.worst.worst_excess),
                    fmt::format("{:.2e}", group.worst.worst_lse_error),
                    fmt::format("{:.2f}", group.worst.worst_lse_excess),
                    fmt::format("{:.1e}", group.cosine_distance)});
  }
  print_result("{}", format_table(columns, rows));
}

std::size_t count_passed(const CheckReport& report) {
  return report.cases.size() - static_cast<std::size_t>(report.num_failed);
}

std::ptrdiff_t count_met(const CheckReport& report) {
  return std::count_if(report.requirements.begin(), report.requirements.end(), is_met);
}

json to_json(const CheckedCase& checked) {
  const check::Comparison& comparison = checked.result.comparison;
  return {{"group", group_of(checked.check_case)},
          {"case", describe(checked.check_case)},
          {"descriptor", json::parse(to_json(descriptor_of(checked.check_case)))},
          {"seqlen_q", seqlen_q_of(checked.check_case)},
          {"batch", batch_of(checked.check_case)},
          {"passed", checked.result.passed},
          {"failure", checked.result.failure},
          {"command", checked.command},
          {"worst_error", comparison.worst_error},
          {"worst_error_over_tolerance", comparison.worst_excess},
          {"worst_lse_error", comparison.worst_lse_error},
          {"worst_lse_error_over_tolerance", comparison.worst_lse_excess},
          {"cosine_distance", checked.result.cosine_distance}};
}

void print_json(const CheckReport& report) {
  json cases = json::array();
  for (const CheckedCase& checked : report.cases) {
    cases.push_back(to_json(checked));
  }
  json requirements = json::array();
  for (const CheckedRequirement& checked : report.requirements) {
    requirements.push_back(to_json(checked));
  }
  const json document = {{"schema", 1},
                         {"card", report.card},
                         {"passed", count_passed(report)},
                         {"failed", report.num_failed},
                         {"cases", std::move(cases)},
                         {"requirements_met", count_met(report)},
                         {"requirements", std::move(requirements)}};
  print_result("{}\n", document.dump());
}

void print_cases(const CheckReport& report) {
  print_table(report);
  for (const CheckedCase& checked : report.cases) {
    if (!checked.result.passed) {
      print_result("{}", format_failure(checked));
    }
  }
  print_result("{} passed, {} failed\n", count_passed(report), report.num_failed);
}

void print_requirements(const CheckReport& report) {
  print_result("{}", format_requirements(report.requirements));
  for (const CheckedRequirement& checked : report.requirements) {
    print_result("{}", format_failures(checked));
  }
  print_result("{} of {} met\n", count_met(report),
               count_of(report.requirements.size(), "requirement"));
}

}  // namespace

std::string format_failure(const CheckedCase& checked) {
  const std::string again =
      checked.command.empty() ? "" : fmt::format("  again: {}\n", checked.command);
  return fmt::format("failed: {}: {}: {}\n{}", group_of(checked.check_case),
                     describe(checked.check_case), checked.result.failure, again);
}

void print_report(const CheckReport& report, bool as_json) {
  if (as_json) {
    print_json(report);
    return;
  }
  print_result("{}\n", report.card.empty() ? "no GPU was needed" : report.card);
  if (!report.cases.empty()) {
    print_cases(report);
  }
  if (!report.requirements.empty()) {
    print_requirements(report);
  }
}

}  // namespace attnjit
