// One case of `attnjit check`, of whichever suite, and what all of them have. Plain values.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "decode_suite.hpp"
#include "prefill_suite.hpp"

namespace attnjit {

using CheckCase = std::variant<check::SuiteCase, check::PrefillSuiteCase>;

enum class CheckSuite { decode, prefill, all };
std::string_view to_string(CheckSuite);

std::vector<CheckCase> cases_of_suite(CheckSuite suite);

const std::string& group_of(const CheckCase& check_case);
const AttentionDescriptor& descriptor_of(const CheckCase& check_case);
std::string describe(const CheckCase& check_case);
int batch_of(const CheckCase& check_case);

// Query tokens of its longest request.
int seqlen_q_of(const CheckCase& check_case);

}  // namespace attnjit
