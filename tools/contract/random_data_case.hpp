// That problems hold data which a wrong mask or a wrong key shows in. Pure; thread-safe.
#pragma once

#include <string>

#include "decode_case.hpp"
#include "prefill_case.hpp"
#include "requirement.hpp"

namespace attnjit::contract {

// No two rows of k, or of v, that are seen are equal.
ContractCase random_data_case(const std::string& name, const check::DecodeCase& decode_case);
ContractCase random_data_case(const std::string& name, const check::PrefillCase& prefill_case);

}  // namespace attnjit::contract
