// One case of `attnjit check`, of whichever suite, and what all of them have. Plain values.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "decode_suite.hpp"
#include "illegal_descriptors.hpp"
#include "prefill_suite.hpp"

namespace attnjit {

// A descriptor that must be refused.
struct IllegalCase {
  std::string group;  // a row of the closing table
  check::IllegalDescriptor illegal;
};

using CheckCase = std::variant<check::SuiteCase, check::PrefillSuiteCase, IllegalCase>;

enum class CheckSuite { decode, prefill, all };
std::string_view to_string(CheckSuite);

std::vector<CheckCase> cases_of_suite(CheckSuite suite);

const std::string& group_of(const CheckCase& check_case);
const AttentionDescriptor& descriptor_of(const CheckCase& check_case);
std::string describe(const CheckCase& check_case);

// Of a descriptor alone 0.
int batch_of(const CheckCase& check_case);

// Query tokens of its longest request; of a descriptor alone 0.
int seqlen_q_of(const CheckCase& check_case);

}  // namespace attnjit
