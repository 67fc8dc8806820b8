// fp8 tensors whose scales the call leaves out, of a kernel that takes some. Pure; thread-safe.
#pragma once

#include <string>

#include "prefill_case.hpp"
#include "requirement.hpp"

namespace attnjit::contract {

// Of a problem with scales: the same without them, by its kernel, against the fp64 reference with
// all scales 1.
ContractCase unit_scales_case(const std::string& name, const check::PrefillCase& prefill_case);

}  // namespace attnjit::contract
