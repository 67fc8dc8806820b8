// A prompt's attention in one go, and that of its last tokens over a cache that holds the first:
// the same rows. Pure; thread-safe.
#pragma once

#include <string>

#include "attnjit/attention_descriptor.hpp"
#include "requirement.hpp"

namespace attnjit::contract {

// Causal, `tokens` of each of three requests. The whole prompt over ragged keys, and its tokens
// from `prefix` on over pages: both against the fp64 reference of the whole prompt.
ContractCase suffix_case(const std::string& name, int num_q_heads, int num_kv_heads, int head_dim,
                         int tokens, int prefix);

}  // namespace attnjit::contract
