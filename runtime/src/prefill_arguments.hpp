// PrefillCall -> the kernel's arguments, and the checks before that. Pure; thread-safe.
#pragma once

#include <cstdint>

#include "attnjit/prefill.hpp"
#include "interface/prefill_arguments.h"

namespace attnjit {

// Requests of a call whose shapes are right.
std::int64_t batch_of(const PrefillCall& call);

// Throws ArgumentError listing everything that is wrong with `call`.
void check_prefill_call(const AttentionDescriptor& descriptor, const PrefillCall& call);

// Of a call that passes the checks.
kernel_interface::PrefillArguments make_prefill_arguments(const AttentionDescriptor& descriptor,
                                                          const PrefillCall& call);

}  // namespace attnjit
