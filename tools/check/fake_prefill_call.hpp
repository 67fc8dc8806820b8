// The call of a prefill case without a GPU.
#pragma once

#include "attnjit/prefill.hpp"
#include "prefill_case.hpp"

namespace attnjit::check {

// Of no memory: nothing may read through its pointers.
PrefillCall fake_call(const PrefillCase& prefill_case);

}  // namespace attnjit::check
