// The part of the correctness grid that is about sliding windows and attention sinks. Pure;
// thread-safe.
#pragma once

#include <vector>

#include "decode_suite.hpp"

namespace attnjit::check {

// Windows of every width beside block, page and sequence, to one side and both, with few query
// tokens and many, split and not, from every kind of plan; sinks of every size, with a window and
// without; the sink oracle. Every group meets all attention kernels.
std::vector<SuiteCase> window_suite();

}  // namespace attnjit::check
