// The suite of `attnjit check`: its cases are legal, and every attention kernel meets every kind of
// trouble. What the kernels make of them is the GPU's to say.
#include "decode_suite.hpp"

#include <map>
#include <set>
#include <string>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "catch.hpp"
#include "window_suite.hpp"

namespace attnjit {
namespace {

// The attention kernel that serves the case on an H200.
std::string kernel_of(const check::SuiteCase& suite_case) {
  return std::string(kernel_name(
      select_configs(suite_case.decode_case.descriptor, find_target_device("h200").value())
          .front()));
}

TEST_CASE("every case of the suite is legal, with queries that its descriptor allows") {
  for (const check::SuiteCase& suite_case : check::decode_suite()) {
    INFO(suite_case.group << ": " << describe(suite_case.decode_case));
    CHECK_NOTHROW(validate(suite_case.decode_case.descriptor));
    CHECK(suite_case.decode_case.seqlen_q >= 1);
    CHECK(suite_case.decode_case.seqlen_q <= suite_case.decode_case.descriptor.max_seqlen_q);
    CHECK(!suite_case.decode_case.seq_lens.empty());
  }
}

TEST_CASE("every attention kernel is checked at edges, with every plan, layout and permutation") {
  const std::set<std::string> all = {"swapped_decode_sm90", "seesaw_decode_sm90",
                                     "paged_decode_sm80"};
  std::map<std::string, std::set<std::string>> kernels;  // by group
  for (const check::SuiteCase& suite_case : check::decode_suite()) {
    kernels[suite_case.group].insert(kernel_of(suite_case));
  }
  for (const char* group :
       {"edge lengths", "many requests", "plan host", "plan stale", "scale negative or tiny",
        "permuted pages, equal to the bit", "batch-invariant, equal to the bit", "batch-invariant",
        "page size 1", "page size 3", "page size 4", "page size 7", "page size 8", "page size 16",
        "page size 32", "page size 48", "page size 64", "page size 256",
        "head dims, v a prefix of k"}) {
    INFO(group);
    CHECK(kernels[group] == all);
  }
  const std::set<std::string> latent = {"swapped_decode_sm90", "seesaw_decode_sm90"};
  for (const char* group :
       {"latent cache of two kv heads", "gathered rows, edge lengths",
        "gathered rows, many requests", "gathered rows, plan host", "gathered rows, plan stale",
        "gathered rows, batch-invariant", "gathered rows, sliding window",
        "gathered rows, permuted pages, equal to the bit"}) {
    INFO(group);
    CHECK(kernels[group] == latent);
  }
}

TEST_CASE("every attention kernel is checked with every kind of window and with sinks") {
  std::map<std::string, std::set<std::string>> kernels;  // by group
  for (const check::SuiteCase& suite_case : check::window_suite()) {
    kernels[suite_case.group].insert(kernel_of(suite_case));
  }
  std::set<std::string> groups;
  for (const auto& [group, served_by] : kernels) {
    INFO(group);
    CHECK(served_by.size() == 3);
    groups.insert(group);
  }
  std::set<std::string> wanted = {"sliding window, one query token",
                                  "sliding window, many query tokens",
                                  "window to both sides",
                                  "sliding window, other pages",
                                  "sliding window, plan host",
                                  "sliding window, plan stale",
                                  "sliding window, permuted pages",
                                  "sinks",
                                  "sinks and sliding window",
                                  "sinks and sliding window, batch-invariant",
                                  "sink oracle"};
  for (const int width : {1, 63, 64, 65, 128, 4096, 1 << 20}) {
    wanted.insert("sliding window, width " + std::to_string(width));
  }
  CHECK(groups == wanted);
}

}  // namespace
}  // namespace attnjit
