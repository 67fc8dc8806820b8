// Prefills through flare_mla_prefill, over problems of the prefill suite with ragged keys: the
// rope columns of k, one head for all, lie in a cache of their own. Pure; thread-safe.
#pragma once

#include <string>

#include "attnjit/flare_mla_prefill.hpp"
#include "prefill_suite.hpp"
#include "requirement.hpp"
#include "rope_cache.hpp"

namespace attnjit::contract {

// DeepSeek's depths (192, 128) unless the shape says otherwise; its page_size and returns_lse do
// not matter here.
check::PrefillCase flare_problem(const FlareMlaPrefillShape& shape, const check::Lengths& lengths);

// The façade's results against the fp64 reference over whole keys.
ContractCase flare_case(const std::string& name, const check::PrefillCase& prefill_case,
                        const RopeCacheForm& form = {});

// The keys in `chunks` parts of every request, each with its cache_offsets, and the results merged.
ContractCase flare_chunks_case(const std::string& name, const check::PrefillCase& prefill_case,
                               int chunks, const RopeCacheForm& form = {});

}  // namespace attnjit::contract
