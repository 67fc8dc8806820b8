// Cases that are problems of the decode, prefill and token-sparse suites, as these check them:
// against the fp64 reference, with every slot that nothing owns or sees poisoned. Pure;
// thread-safe.
#pragma once

#include <string>

#include "decode_suite.hpp"
#include "prefill_suite.hpp"
#include "requirement.hpp"
#include "sparse_mla_case.hpp"

namespace attnjit::contract {

ContractCase reference_case(const std::string& name, const check::DecodeCase& decode_case);
ContractCase reference_case(const std::string& name, const check::PrefillCase& prefill_case);
ContractCase reference_case(const std::string& name, const check::SparseMlaCase& sparse_case);

// The pages in two orders: equal to the bit.
ContractCase permutation_case(const std::string& name, const check::DecodeCase& decode_case);
ContractCase permutation_case(const std::string& name, const check::PrefillCase& prefill_case);

// Each request in several batches and beside several mates: equal to the bit.
ContractCase batch_invariance_case(const std::string& name, const check::DecodeCase& decode_case);

// Scale 0 and V = 1, the only constant data there is: every output is keys / (keys + e^sink).
ContractCase sink_oracle_case(const std::string& name, check::DecodeCase decode_case);

}  // namespace attnjit::contract
