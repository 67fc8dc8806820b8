#include "check_report.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/descriptor_json.hpp"
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

}  // namespace

std::string format_failure(const CheckedCase& checked) {
  const std::string again =
      checked.command.empty() ? "" : fmt::format("  again: {}\n", checked.command);
  return fmt::format("failed: {}: {}: {}\n{}", group_of(checked.check_case),
                     describe(checked.check_case), checked.result.failure, again);
}

void print_report(const CheckReport& report, bool as_json) {
  const int num_passed = static_cast<int>(report.cases.size()) - report.num_failed;
  if (as_json) {
    json cases = json::array();
    for (const CheckedCase& checked : report.cases) {
      cases.push_back(to_json(checked));
    }
    const json document = {{"schema", 1},
                           {"card", report.card},
                           {"passed", num_passed},
                           {"failed", report.num_failed},
                           {"cases", std::move(cases)}};
    print_result("{}\n", document.dump());
    return;
  }
  print_result("{}\n", report.card);
  print_table(report);
  for (const CheckedCase& checked : report.cases) {
    if (!checked.result.passed) {
      print_result("{}", format_failure(checked));
    }
  }
  print_result("{} passed, {} failed\n", num_passed, report.num_failed);
}

}  // namespace attnjit
