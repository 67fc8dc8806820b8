// The part of the prefill suite about masks joined by and and or, about custom masks and modifiers,
// and about biases beside masks. Pure; thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include "prefill_suite.hpp"

namespace attnjit::check {

// The same call under a formula's masks, with windows, chunks, an expression and types for them.
AttentionDescriptor composed(AttentionDescriptor descriptor, std::string_view formula);

// Every mask in some formula, every expression of custom_expressions.hpp, biases of every type.
std::vector<PrefillSuiteCase> prefill_composition_suite();

}  // namespace attnjit::check
