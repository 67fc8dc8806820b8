// Decodes through get_mla_metadata and flash_mla_with_kvcache, over a problem of the decode suite,
// whose caches are a request's own [B, Hk, Nblk, 64, D]. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "decode_case.hpp"
#include "requirement.hpp"

namespace attnjit::contract {

// Causal, V of its own: the problem that flash_mla_case takes, to be changed in place.
check::DecodeCase flash_mla_problem(int num_q_heads, int num_kv_heads, int head_dim, int seqlen_q,
                                    std::vector<int> seq_lens);

// The outputs and LSEs of the façade against the fp64 reference. A scale that is the façade's
// default is left to it.
ContractCase flash_mla_case(const std::string& name, const check::DecodeCase& decode_case);

}  // namespace attnjit::contract
