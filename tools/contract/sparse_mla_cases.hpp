// What shows token-sparse attention: problems of its suite. Pure; thread-safe.
#pragma once

#include "requirement.hpp"

namespace attnjit::contract {

// Prefill, decode, and decode over either fp8 encoding: head counts; lists that name tokens twice
// or none, with lengths and garbage behind them; a second pool; sinks; with and without the largest
// scores.
ContractCases sparse_mla_cases();

}  // namespace attnjit::contract
