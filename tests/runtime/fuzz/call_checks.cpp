#include "call_checks.hpp"

#include <climits>
#include <cstdio>
#include <cstdlib>

#include "c_abi_session.hpp"

namespace attnjit::test {

void check_that(bool is_right, const char* what) {
  if (!is_right) {
    std::fprintf(stderr, "c_abi_fuzz: %s: %s\n", what, attnjit_last_message());
    std::abort();
  }
}

void check_status(attnjit_status status) {
  const bool has_message = *attnjit_last_message() != '\0';
  const bool lists = status == ATTNJIT_INVALID_DESCRIPTOR || status == ATTNJIT_INVALID_CALL;
  check_that(status >= ATTNJIT_OK && status < ATTNJIT_INTERNAL_ERROR, attnjit_status_name(status));
  check_that(has_message == (status != ATTNJIT_OK), "a message that does not fit the status");
  check_that(violated_fields().empty() != lists, "a list that does not fit the status");
}

void check_launches(const std::vector<Launch>& launches) {
  for (const Launch& launch : launches) {
    const CUlaunchConfig& config = launch.config;
    check_that(config.gridDimX >= 1 && config.gridDimX <= INT_MAX && config.gridDimY >= 1 &&
                   config.gridDimY <= 65535 && config.gridDimZ >= 1 && config.gridDimZ <= 65535,
               "a grid that no GPU takes");
  }
}

}  // namespace attnjit::test
