// The cases of `attnjit check --fuzz`, and how to run each again alone. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check_run.hpp"

namespace attnjit {

// Cases [first, first + count) of what `seed` gives; count 0: no fuzzing.
struct FuzzRange {
  int count = 0;
  std::uint64_t seed = 1;
  std::uint64_t first = 0;
};

struct FuzzedCases {
  std::vector<CheckCase> cases;
  std::vector<std::string> commands;  // one line each, which runs the case again
};

// As many problems as the range counts, decodes before prefills, then as many calls of façades, as
// many illegal descriptors and as many illegal calls.
FuzzedCases fuzz_cases(const FuzzRange& range);

// Gives every case of the report its command. The report must be of all of `fuzzed`, in order.
void name_commands(CheckReport& report, const FuzzedCases& fuzzed);

}  // namespace attnjit
