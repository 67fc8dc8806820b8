#include "check_case.hpp"

#include <algorithm>
#include <iterator>

namespace attnjit {
namespace {

const check::DecodeCase& problem_of(const check::SuiteCase& suite_case) {
  return suite_case.decode_case;
}

const check::PrefillCase& problem_of(const check::PrefillSuiteCase& suite_case) {
  return suite_case.prefill_case;
}

const check::PrefillCase& problem_of(const FacadeCase& facade_case) {
  return facade_case.call.problem;
}

const check::SparseMlaCase& problem_of(const check::SparseMlaSuiteCase& suite_case) {
  return suite_case.sparse_case;
}

template <typename Illegal>
const Illegal& problem_of(const RefusalCase<Illegal>& refusal_case) {
  return refusal_case.illegal;
}

int longest_query(const check::DecodeCase& decode_case) {
  return decode_case.seqlen_q;
}

int longest_query(const check::PrefillCase& prefill_case) {
  return *std::max_element(prefill_case.q_lens.begin(), prefill_case.q_lens.end());
}

int longest_query(const check::SparseMlaCase& sparse_case) {
  return sparse_case.seqlen_q;
}

template <typename Case>
int count_requests(const Case& suite_case) {
  return problem_of(suite_case).batch();
}

int count_requests(const check::SparseMlaSuiteCase& suite_case) {
  return suite_case.sparse_case.batch;
}

template <typename Illegal>
int count_requests(const RefusalCase<Illegal>&) {
  return 0;
}

template <typename Case>
int count_queries(const Case& suite_case) {
  return longest_query(problem_of(suite_case));
}

template <typename Illegal>
int count_queries(const RefusalCase<Illegal>&) {
  return 0;
}

template <typename Case>
std::vector<AttentionDescriptor> list_kernels(const Case& suite_case) {
  return {problem_of(suite_case).descriptor};
}

std::vector<AttentionDescriptor> list_kernels(const FacadeCase& facade_case) {
  return contract::as_case(facade_case.call).kernels;
}

template <typename Illegal>
std::vector<AttentionDescriptor> list_kernels(const RefusalCase<Illegal>&) {
  return {};
}

template <typename Case>
std::string describe_case(const Case& suite_case) {
  return describe(problem_of(suite_case));
}

std::string describe_case(const FacadeCase& facade_case) {
  return describe(facade_case.call);
}

template <typename Case>
void append(std::vector<CheckCase>& cases, std::vector<Case> more) {
  std::move(more.begin(), more.end(), std::back_inserter(cases));
}

}  // namespace

std::string_view to_string(CheckSuite suite) {
  switch (suite) {
    case CheckSuite::decode:
      return "decode";
    case CheckSuite::prefill:
      return "prefill";
    case CheckSuite::contract:
      return "contract";
    case CheckSuite::sparse:
      return "sparse";
    case CheckSuite::all:
      return "all";
  }
  return "";
}

std::vector<CheckCase> cases_of_suite(CheckSuite suite) {
  std::vector<CheckCase> cases;
  const bool is_all = suite == CheckSuite::all;
  if (is_all || suite == CheckSuite::decode) {
    append(cases, check::decode_suite());
  }
  if (is_all || suite == CheckSuite::prefill) {
    append(cases, check::prefill_suite());
  }
  if (is_all || suite == CheckSuite::sparse) {
    append(cases, check::sparse_mla_suite());
  }
  return cases;
}

std::vector<AttentionDescriptor> kernels_of(const CheckCase& check_case) {
  return std::visit([](const auto& suite_case) { return list_kernels(suite_case); }, check_case);
}

const std::string& group_of(const CheckCase& check_case) {
  return std::visit([](const auto& suite_case) -> const std::string& { return suite_case.group; },
                    check_case);
}

const AttentionDescriptor& descriptor_of(const CheckCase& check_case) {
  return std::visit(
      [](const auto& suite_case) -> const AttentionDescriptor& {
        return problem_of(suite_case).descriptor;
      },
      check_case);
}

std::string describe(const CheckCase& check_case) {
  return std::visit([](const auto& suite_case) { return describe_case(suite_case); }, check_case);
}

int batch_of(const CheckCase& check_case) {
  return std::visit([](const auto& suite_case) { return count_requests(suite_case); }, check_case);
}

int seqlen_q_of(const CheckCase& check_case) {
  return std::visit([](const auto& suite_case) { return count_queries(suite_case); }, check_case);
}

}  // namespace attnjit
