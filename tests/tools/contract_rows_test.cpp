// The requirements of `attnjit check --suite contract`: each is there once and says how it is
// shown. Refusals and facts are checked here; the rest is the GPU's to say.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "attnjit/descriptor_json.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "catch.hpp"
#include "rows.hpp"

namespace attnjit::contract {
namespace {

std::vector<std::string> numbered(const std::string& prefix, int count) {
  std::vector<std::string> ids;
  for (int i = 1; i <= count; ++i) {
    ids.push_back(prefix + std::to_string(i));
  }
  return ids;
}

TEST_CASE("every requirement, reading and trap is there once") {
  std::vector<std::string> wanted = {"stride_order",
                                     "§5 skipped tiles",
                                     "§5 page stride",
                                     "§5 window splits",
                                     "§5 unused slots",
                                     "§5 other requests",
                                     "§5 other heads",
                                     "§5 other rows",
                                     "§5 permuted block table",
                                     "§5 block table padding",
                                     "§5 sink oracle",
                                     "§5 cached prefix",
                                     "§5 batch",
                                     "§5 no constant data",
                                     "§5 head ratios",
                                     "§5 MLA heads",
                                     "§5 lengths",
                                     "§5 rows crossing 64",
                                     "§5 70000 rows",
                                     "§5 70000 requests",
                                     "§5 scales"};
  for (const auto& [prefix, count] :
       std::vector<std::pair<std::string, int>>{{"R", 55}, {"A", 20}, {"§1.", 12}, {"§4.", 14}}) {
    wanted = joined(wanted, numbered(prefix, count));
  }
  std::erase(wanted, "A19");  // the list has none
  std::vector<std::string> ids;
  for (const Requirement& requirement : all_requirements()) {
    ids.push_back(requirement.id);
  }
  std::sort(ids.begin(), ids.end());
  std::sort(wanted.begin(), wanted.end());
  CHECK(ids == wanted);
}

TEST_CASE("every requirement is said, and has cases or says what is not covered") {
  for (const Requirement& requirement : all_requirements()) {
    INFO(requirement.id);
    CHECK(!requirement.sentence.empty());
    CHECK(requirement.cases.empty() <= !requirement.not_covered.empty());
  }
}

TEST_CASE("the cases of a requirement have names of their own, and run either here or on a GPU") {
  for (const Requirement& requirement : all_requirements()) {
    std::set<std::string> names;
    for (const ContractCase& each : requirement.cases) {
      INFO(requirement.id << ": " << each.name);
      CHECK(names.insert(each.name).second);
      CHECK(bool{each.on_host} != bool{each.on_gpu});
      CHECK((each.on_gpu || each.kernels.empty()));
    }
  }
}

TEST_CASE("what needs no GPU passes, refusals by name among it") {
  int refusals = 0;
  for (const Requirement& requirement : all_requirements()) {
    for (const ContractCase& each : requirement.cases) {
      if (each.on_host) {
        const check::CheckResult result = each.on_host();
        INFO(requirement.id << ": " << each.name << ": " << result.failure);
        CHECK(result.passed);
        refusals += each.proof == Proof::refusal ? 1 : 0;
      }
    }
  }
  CHECK(refusals > 80);
}

TEST_CASE("every kernel of the contract is of a legal descriptor, and they are few") {
  std::set<std::string> descriptors;
  for (const Requirement& requirement : all_requirements()) {
    for (const ContractCase& each : requirement.cases) {
      for (const AttentionDescriptor& descriptor : each.kernels) {
        INFO(requirement.id << ": " << each.name);
        CHECK_NOTHROW(validate(descriptor));
        descriptors.insert(to_json(descriptor));
      }
    }
  }
  INFO(descriptors.size());
  CHECK(descriptors.size() <= 270);
}

std::vector<std::string> ids_of(const std::string& pattern) {
  std::vector<std::string> ids;
  for (const Requirement& requirement : requirements_of(pattern)) {
    ids.push_back(requirement.id);
  }
  return ids;
}

TEST_CASE("a glob chooses requirements by their ids, whole") {
  CHECK(ids_of("").size() == all_requirements().size());
  CHECK(ids_of("*").size() == all_requirements().size());
  CHECK(ids_of("R4") == std::vector<std::string>{"R4"});
  CHECK(ids_of("R4?").size() == 10);
  CHECK(ids_of("R4*").size() == 11);
  CHECK(ids_of("A1?").size() == 9);  // A10 to A18
  CHECK(ids_of("*ratios") == std::vector<std::string>{"§5 head ratios"});
  CHECK(ids_of("§4.?").size() == 9);
  CHECK(ids_of("R").empty());
  CHECK(matches_glob("a*b*c", "axxbyybc"));
  CHECK_FALSE(matches_glob("a*b*c", "axxbyybcd"));
  CHECK_FALSE(matches_glob("?", ""));
}

}  // namespace
}  // namespace attnjit::contract
