// The fields of a config.json that look as if they shaped attention and that no reader asked for:
// reported with every plan, so that nothing is ignored silently. Private; pure, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "model_config.hpp"

namespace attnjit {

// Dotted names, sorted. Fields that are null, empty or false ask for nothing and are left
// out; a causality field that is false does, and so does a torch_dtype that no plan knows.
std::vector<std::string> find_unread_fields(const ModelConfig& config);

}  // namespace attnjit
