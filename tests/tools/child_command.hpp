// An attnjit that runs beside the test, so that the test can send it signals.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace attnjit {

// Starts `attnjit <arguments>`, its output thrown away.
pid_t start_attnjit(const std::vector<std::string>& arguments);

// Its exit code, or minus the signal that ended it.
int wait_for_attnjit(pid_t child);

// Waits until `happened` or for two minutes; returns whether it did.
bool wait_until(const std::function<bool()>& happened);

}  // namespace attnjit
