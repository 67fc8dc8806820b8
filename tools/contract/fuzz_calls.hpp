// Random calls of what the decode and prefill problems do not reach: flare_mla_prefill, cache
// writes, merges of partial results. For `attnjit check --fuzz`. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "append_case.hpp"
#include "flare_case.hpp"
#include "prefill_case.hpp"
#include "requirement.hpp"

namespace attnjit::contract {

enum class FuzzCallKind { flare, flare_chunks, append, merge };
std::string_view to_string(FuzzCallKind);

struct FuzzCall {
  FuzzCallKind kind = FuzzCallKind::flare;
  check::PrefillCase problem;
  RopeCacheForm rope;  // of flare
  int chunks = 1;      // of flare_chunks and merge
  AppendForm append = AppendForm::block_table;
};

// A call that is served, deterministic in both arguments. Consecutive ones share their kernels, as
// those of make_fuzz_case do.
FuzzCall make_fuzz_call(std::uint64_t seed, std::uint64_t index);

// "merge of 3: prefill 128/128 …".
std::string describe(const FuzzCall& call);

// The case that runs it.
ContractCase as_case(const FuzzCall& call);

}  // namespace attnjit::contract
