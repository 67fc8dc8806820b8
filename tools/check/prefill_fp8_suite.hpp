// The part of the correctness grid of prefill that is about fp8: queries, keys, values and outputs
// of it, with scales of every grain. Pure; thread-safe.
#pragma once

#include <vector>

#include "prefill_suite.hpp"

namespace attnjit::check {

// bf16 queries over fp8 keys, and everything in fp8; every layout and page size of note; outputs of
// every type; masks and modifiers on top; permuted pages that must not change a bit.
std::vector<PrefillSuiteCase> prefill_fp8_suite();

}  // namespace attnjit::check
