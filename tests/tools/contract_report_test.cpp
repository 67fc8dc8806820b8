// Requirements as they are printed: what is met, what fails and what no case shows yet.
#include "contract_report.hpp"

#include <stdexcept>

#include "catch.hpp"
#include "contract_gpu.hpp"

namespace attnjit {
namespace {

using contract::ContractCase;
using contract::Proof;
using contract::Requirement;

ContractCase refusal(const std::string& name, const std::string& failure = "") {
  return {.name = name, .proof = Proof::refusal, .on_host = [failure] {
            return contract::result_of(failure);
          }};
}

ContractCase comparison(const std::string& name, double excess, double lse_excess) {
  return {.name = name, .proof = Proof::reference, .on_host = [excess, lse_excess] {
            check::CheckResult result = contract::result_of("");
            result.comparison.worst_excess = excess;
            result.comparison.worst_lse_excess = lse_excess;
            return result;
          }};
}

CheckedRequirement checked(const Requirement& requirement) {
  return run_requirements({requirement}).front();
}

TEST_CASE("a requirement is met if it has cases, all pass and none is missing") {
  CHECK(is_met(checked({"R1", "one", {refusal("a"), refusal("b")}, ""})));
  CHECK_FALSE(is_met(checked({"R1", "one", {refusal("a"), refusal("b", "accepted")}, ""})));
  CHECK_FALSE(is_met(checked({"R1", "one", {refusal("a")}, "fp8"})));
  CHECK_FALSE(is_met(checked({"R1", "one", {}, ""})));
}

TEST_CASE("what a case throws is its failure, and so is a GPU that is not there") {
  const ContractCase throwing = {.name = "a", .on_host = []() -> check::CheckResult {
                                   throw std::runtime_error("no such thing");
                                 }};
  const ContractCase on_gpu = {
      .name = "b", .on_gpu = [](contract::ContractGpu&) { return contract::result_of(""); }};
  const CheckedRequirement result = checked({"R1", "one", {throwing, on_gpu}, ""});
  CHECK_FALSE(is_met(result));
  CHECK(result.results[0].failure == "no such thing");
  CHECK_FALSE(result.results[1].passed);
  CHECK(needs_gpu({result.requirement}));
  CHECK_FALSE(needs_gpu({{"R1", "one", {throwing}, ""}}));
}

TEST_CASE("the table has a row per requirement, with the worst error and what it is shown by") {
  const std::vector<CheckedRequirement> rows = {
      checked({"R1", "heads", {comparison("a", 0.25, 0.5), comparison("b", 0.75, 0.0)}, ""}),
      checked({"R2", "tables", {comparison("a", 0.1, 0.2), refusal("c")}, ""}),
      checked({"§4.1", "masks", {refusal("c", "accepted")}, ""}),
      checked({"A3", "scales", {}, "overload 3"}),
  };
  CHECK(format_requirements(rows) ==
        "id    required  cases  from … to  error / tolerance  result\n"
        "R1    heads         2  a … b      0.75               pass\n"
        "R2    tables        2  a … c      0.20, refused      pass\n"
        "§4.1  masks         1  c          not refused        FAIL\n"
        "A3    scales        0                                FAIL, not covered: overload 3\n");
}

TEST_CASE("a failure names requirement and case, and the command that runs it again") {
  CHECK(format_failures(
            checked({"§5 scales", "one", {refusal("a"), refusal("b", "accepted")}, ""})) ==
        "failed: §5 scales: b: accepted\n"
        "  again: attnjit check --suite contract --filter '§5 scales'\n");
  CHECK(format_failures(checked({"R1", "one", {refusal("a")}, ""})).empty());
}

TEST_CASE("the JSON of a requirement holds its cases and what is missing") {
  const nlohmann::json row = to_json(checked({"R1", "heads", {refusal("a", "accepted")}, "fp8"}));
  CHECK(row["id"] == "R1");
  CHECK(row["not_covered"] == "fp8");
  CHECK(row["passed"] == false);
  CHECK(row["cases"][0]["case"] == "a");
  CHECK(row["cases"][0]["shown_by"] == "refused");
  CHECK(row["cases"][0]["failure"] == "accepted");
}

}  // namespace
}  // namespace attnjit
