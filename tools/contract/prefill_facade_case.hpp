// Prefills through flash_mla_prefill and mha_fwd_kvcache, over problems of the prefill suite whose
// queries are [B, Hq, P, D] (bhsd), as many of each request. Pure; thread-safe.
#pragma once

#include <string>

#include "attnjit/flash_mla_prefill.hpp"
#include "prefill_case.hpp"
#include "requirement.hpp"

namespace attnjit::contract {

// P queries and as many keys, or `keys`, of each of `batch` requests, for flash_mla_prefill_case.
check::PrefillCase flash_mla_prefill_problem(const FlashMlaPrefillShape& shape, int batch,
                                             int queries, int keys = 0);

// How the block-sparse layout is told: a byte per block, or compressed rows.
enum class BlockLayoutForm { mask, compressed_rows };

// The façade's results against the fp64 reference.
ContractCase flash_mla_prefill_case(const std::string& name, const check::PrefillCase& prefill_case,
                                    BlockLayoutForm form = BlockLayoutForm::mask);

// P queries of each request, and its keys, for the two below.
check::PrefillCase mha_problem(const MhaKvCacheShape& shape, int queries,
                               const std::vector<int>& kv_lens);

// Over caches that hold all keys already.
ContractCase mha_case(const std::string& name, const check::PrefillCase& prefill_case);

// Over caches that lack the last P keys of each request, which come with the call: the results, and
// the caches after it, to the byte.
ContractCase mha_write_case(const std::string& name, const check::PrefillCase& prefill_case);

}  // namespace attnjit::contract
