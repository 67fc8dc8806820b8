// The list of cases of `attnjit check --fuzz`, and how each is told to be run again.
#include "fuzz_run.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "check_report.hpp"

namespace attnjit {
namespace {

TEST_CASE(
    "fuzzing runs as many problems, façades, illegal descriptors and illegal calls, by groups") {
  const FuzzedCases fuzzed = fuzz_cases({.count = 300, .seed = 4, .first = 90});
  REQUIRE(fuzzed.cases.size() == 1200);
  REQUIRE(fuzzed.commands.size() == 1200);
  std::vector<std::string> groups;
  for (const CheckCase& check_case : fuzzed.cases) {
    if (groups.empty() || groups.back() != group_of(check_case)) {
      groups.push_back(group_of(check_case));
    }
  }
  CHECK(groups == std::vector<std::string>{"fuzz decode", "fuzz prefill", "fuzz façades",
                                           "fuzz illegal descriptors", "fuzz illegal calls"});
  CHECK(std::set(fuzzed.commands.begin(), fuzzed.commands.end()).size() == 300);
}

TEST_CASE("the command of a fuzzed case is one line, which gives that case again") {
  const FuzzedCases fuzzed = fuzz_cases({.count = 50, .seed = 12345678901234567890U, .first = 17});
  CheckReport report;
  for (const CheckCase& check_case : fuzzed.cases) {
    report.cases.push_back({check_case, {}, ""});
  }
  name_commands(report, fuzzed);
  const std::string start = "attnjit check --fuzz 1 --seed 12345678901234567890 --first ";
  for (const CheckedCase& checked : report.cases) {
    INFO(checked.command);
    REQUIRE(checked.command.starts_with(start));
    const FuzzedCases again =
        fuzz_cases({.count = 1,
                    .seed = 12345678901234567890U,
                    .first = std::stoull(checked.command.substr(start.size()))});
    REQUIRE(again.cases.size() == 4);
    const CheckCase& same =
        *std::find_if(again.cases.begin(), again.cases.end(), [&](const CheckCase& check_case) {
          return group_of(check_case) == group_of(checked.check_case);
        });
    CHECK(describe(same) == describe(checked.check_case));
    CHECK(descriptor_of(same) == descriptor_of(checked.check_case));
    CHECK(batch_of(same) == batch_of(checked.check_case));
    CHECK(seqlen_q_of(same) == seqlen_q_of(checked.check_case));
  }
}

TEST_CASE("a failure is printed with the command that runs it again, where there is one") {
  check::CheckResult failed;
  failed.failure = "accepted";
  CheckedCase checked = {
      RefusalCase<check::IllegalDescriptor>{"fuzz illegal descriptors", {{}, {"mask", "topk"}}},
      failed, "attnjit check --fuzz 1 --seed 3 --first 4"};
  CHECK(format_failure(checked) ==
        "failed: fuzz illegal descriptors: mask causal, topk 0: accepted\n"
        "  again: attnjit check --fuzz 1 --seed 3 --first 4\n");
  checked.command.clear();
  CHECK(format_failure(checked) ==
        "failed: fuzz illegal descriptors: mask causal, topk 0: accepted\n");
}

}  // namespace
}  // namespace attnjit
