// Attention over parts of the keys, merged by LSE into attention over all of them. Pure, apart from
// merge_owned_rows; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "attnjit/merge_states.hpp"
#include "contract_gpu.hpp"
#include "prefill_case.hpp"
#include "requirement.hpp"

namespace attnjit::contract {

// A prefill with ragged queries and keys, its keys in `chunks` parts, each told its position:
// merged, against the fp64 reference over all keys.
ContractCase merge_case(const std::string& name, const check::PrefillCase& prefill_case,
                        int chunks);

// Merges `parts`, which lie as out and lse of `whole` do, into these; only rows of requests. Throws
// CudaError.
void merge_owned_rows(ContractGpu& gpu, const check::PrefillCase& prefill_case,
                      std::vector<PartialAttention> parts, const PrefillCall& whole);

}  // namespace attnjit::contract
