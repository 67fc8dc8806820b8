// One case of `attnjit check`, of whichever suite, and what all of them have. Plain values.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "decode_suite.hpp"
#include "fuzz_calls.hpp"
#include "illegal_calls.hpp"
#include "illegal_descriptors.hpp"
#include "prefill_suite.hpp"
#include "sparse_mla_suite.hpp"

namespace attnjit {

// What must be refused: a descriptor, or a call.
template <typename Illegal>
struct RefusalCase {
  std::string group;  // a row of the closing table
  Illegal illegal;
};

// A random call of a façade.
struct FacadeCase {
  std::string group;  // a row of the closing table
  contract::FuzzCall call;
};

using CheckCase =
    std::variant<check::SuiteCase, check::PrefillSuiteCase, check::SparseMlaSuiteCase, FacadeCase,
                 RefusalCase<check::IllegalDescriptor>, RefusalCase<check::IllegalCall>>;

// What the case runs; nothing of what must be refused.
std::vector<AttentionDescriptor> kernels_of(const CheckCase& check_case);

enum class CheckSuite { decode, prefill, sparse, contract, all };
std::string_view to_string(CheckSuite);

// Those of decode and prefill; the contract has requirements in their place (contract_run.hpp).
std::vector<CheckCase> cases_of_suite(CheckSuite suite);

const std::string& group_of(const CheckCase& check_case);
const AttentionDescriptor& descriptor_of(const CheckCase& check_case);
std::string describe(const CheckCase& check_case);

// Of what must be refused 0.
int batch_of(const CheckCase& check_case);

// Query tokens of its longest request; of what must be refused 0.
int seqlen_q_of(const CheckCase& check_case);

}  // namespace attnjit
