// Cache writes through append_kv_cache: what is taken out of a prefill problem's paged cache must
// be in its place again, and nothing else may have changed. Pure; thread-safe.
#pragma once

#include <string>

#include "prefill_case.hpp"
#include "requirement.hpp"

namespace attnjit::contract {

// How the call says where a token goes.
enum class AppendForm { block_table, slots };

// The problem's queries count the new tokens of each request. Slots: of a pool.
ContractCase append_case(const std::string& name, const check::PrefillCase& prefill_case,
                         AppendForm form);

}  // namespace attnjit::contract
