// Random prefill calls, of no memory, that must be refused. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/prefill.hpp"
#include "reference_comparison.hpp"

namespace attnjit::check {

struct IllegalCall {
  AttentionDescriptor descriptor;  // legal
  PrefillCall call;
  std::string argument;  // that is wrong
  std::string change;    // "dtype int64"
};

// One argument of a legal call made wrong, deterministic in both arguments.
IllegalCall make_illegal_call(std::uint64_t seed, std::uint64_t index);

// "q of prefill: dtype int64".
std::string describe(const IllegalCall& illegal);

// Passed if the call's checks refuse it and name the argument, with what is allowed and the fix.
CheckResult check_refusal(const IllegalCall& illegal);

}  // namespace attnjit::check
