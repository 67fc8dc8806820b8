// Which GPUs a command makes kernels for: by architecture, by card, or those of this machine.
#pragma once

#include <string>
#include <vector>

#include "attnjit/target_device.hpp"

namespace CLI {
class App;
}

namespace attnjit {

struct TargetArguments {
  std::vector<std::string> names;  // empty: the GPUs of this machine, else sm_90a
};

// Declares --arch on `command`; `arguments` must outlive the parse.
void add_target_arguments(CLI::App& command, TargetArguments& arguments);

// The targets, each once, in the order given. Throws UsageError for an unknown name, listing the
// known ones.
std::vector<TargetDevice> find_targets(const TargetArguments& arguments);

}  // namespace attnjit
