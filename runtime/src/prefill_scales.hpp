// The scales of the fp8 tensors of a PrefillCall: checks, and where they lie. Pure; thread-safe.
#pragma once

#include <cstdint>

#include "attnjit/prefill.hpp"
#include "interface/prefill_arguments.h"
#include "tensor_checks.hpp"

namespace attnjit {

// After the tensors that they belong to have been checked.
void check_prefill_scales(TensorChecks& checks, const AttentionDescriptor& descriptor,
                          const PrefillCall& call, std::int64_t batch);

// Sets the scales of a call that passes the checks.
void set_prefill_scales(const AttentionDescriptor& descriptor, const PrefillCall& call,
                        kernel_interface::PrefillArguments& arguments);

}  // namespace attnjit
