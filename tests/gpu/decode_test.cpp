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
    const check::DecodeCheckResult result = checker.check(suite_case);
    INFO(suite_case.group << ": " << describe(suite_case.decode_case) << ": " << result.failure);
    CHECK(result.passed);
  }
}

}  // namespace
}  // namespace attnjit
