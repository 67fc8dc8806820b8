// What must hold after any call of the C interface; else the process aborts, with the message.
#pragma once

#include <vector>

#include "attnjit/attnjit.h"
#include "mock_driver.hpp"

namespace attnjit::test {

void check_that(bool is_right, const char* what);

// The status is known, and message and list of violations of this thread fit it.
void check_status(attnjit_status status);

// Within the limits that every GPU has.
void check_launches(const std::vector<Launch>& launches);

}  // namespace attnjit::test
