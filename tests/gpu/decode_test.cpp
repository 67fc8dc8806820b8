// Paged decode on the GPU against the fp64 reference: the whole suite of `attnjit check`.
#include "catch.hpp"
#include "decode_checker.hpp"
#include "decode_suite.hpp"
#include "gpu_runtime.hpp"

namespace attnjit {
namespace {

TEST_CASE("every case of the decode suite agrees with the fp64 reference") {
  check::DecodeChecker checker(gpu_runtime(), 0);
  for (const check::SuiteCase& suite_case : check::decode_suite()) {
    const check::CheckResult result = checker.check(suite_case);
    INFO(suite_case.group << ": " << describe(suite_case.decode_case) << ": " << result.failure);
    CHECK(result.passed);
  }
}

// The check itself: without the mode the cuts follow the batch, and the last bits follow the cuts.
TEST_CASE("a decode that may follow its batch does not pass for batch-invariant") {
  check::DecodeChecker checker(gpu_runtime(), 0);
  for (check::SuiteCase suite_case : check::decode_suite()) {
    if (suite_case.kind == check::CheckKind::batch) {
      suite_case.decode_case.descriptor.batch_invariant = false;
      INFO(describe(suite_case.decode_case));
      CHECK_FALSE(checker.check(suite_case).passed);
    }
  }
}

}  // namespace
}  // namespace attnjit
