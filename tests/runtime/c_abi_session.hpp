// What the tests of the C interface share: a runtime over the mock driver, and what its last call
// said. Kernels come from a cache that the test programs share, so that each is compiled once. What
// should succeed and does not is a std::runtime_error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attnjit/attnjit.h"
#include "mock_driver.hpp"

namespace attnjit::test {

// The state inside the mock that libattnjit.so opens, as new.
MockDriver& fresh_mock_of_library();

void require_ok(attnjit_status status);

// All default, but for the cache.
attnjit_runtime_options session_options();

class CAbiSession {
 public:
  using Change = std::function<void(attnjit_runtime_options&)>;

  // `change` the options, if it is given.
  explicit CAbiSession(const Change& change = {});
  ~CAbiSession();
  CAbiSession(const CAbiSession&) = delete;
  CAbiSession& operator=(const CAbiSession&) = delete;

  attnjit_kernel prepare(const char* descriptor, void* stream = nullptr);
  attnjit_plan make_plan(const char* descriptor, int max_batch);

  // Entry names of the launches since the last call of it.
  std::vector<std::string> take_launched_kernels();

  MockDriver& mock;
  attnjit_runtime runtime = 0;
};

// Of attnjit_last_violations(), in order.
std::vector<std::string> violated_fields();

// Whether attnjit_last_message() holds `part`.
bool last_message_has(const std::string& part);

}  // namespace attnjit::test
