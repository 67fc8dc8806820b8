// Prefills through flare_mla_prefill with fp8 tensors, its overloads 3 and 4 among them: of
// problems of the prefill suite, with a rope that lies in a cache. Pure; thread-safe.
#pragma once

#include <string>

#include "attnjit/flare_mla_prefill.hpp"
#include "prefill_suite.hpp"
#include "requirement.hpp"
#include "rope_cache.hpp"

namespace attnjit::contract {

// Of the shape's types and scales, of which one is fp8; page_size and returns_lse do not matter
// here. Scales are no powers of two, those of the rope one for 64 columns. Against the fp64
// reference over what all tensors stand for.
ContractCase flare_fp8_case(const std::string& name, const FlareMlaPrefillShape& shape,
                            const check::Lengths& lengths, const RopeCacheForm& form = {});

}  // namespace attnjit::contract
