// The part of the correctness grid of prefill that is about what a query sees: masks, positions,
// score modifiers, sinks, block-sparse layouts. Pure; thread-safe.
#pragma once

#include <vector>

#include "prefill_suite.hpp"

namespace attnjit::check {

// Every mask kind over ragged keys and pages: windows to each side, chunks beside tiles, masks from
// memory that are broadcast or short; queries and keys at other positions; modifiers; sinks of
// every size; blocks of every size, per head and shared.
std::vector<PrefillSuiteCase> prefill_mask_suite();

}  // namespace attnjit::check
