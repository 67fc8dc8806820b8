#include "sparse_mla_cases.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "reference_case.hpp"
#include "sparse_mla_suite.hpp"

namespace attnjit::contract {
namespace {

constexpr std::array groups = {"heads", "lists", "two pools", "sinks", "largest scores"};

bool is_of_group(std::string_view name) {
  return std::any_of(groups.begin(), groups.end(),
                     [&](std::string_view group) { return name.ends_with(group); });
}

// One descriptor of each encoding, and few head counts and pages of the second pool.
bool is_chosen(const check::SparseMlaCase& sparse_case) {
  const AttentionDescriptor& descriptor = sparse_case.descriptor;
  constexpr std::array heads = {1, 16, 40, 71, 128};
  constexpr std::array extra_pages = {1, 3, 61};  // 1: also of a case without that pool
  return descriptor.dtype_q == DataType::bf16 &&
         (descriptor.head_dim_qk == 576 || descriptor.kv_encoding == KvEncoding::fp8_584) &&
         std::count(heads.begin(), heads.end(), descriptor.num_q_heads) > 0 &&
         std::count(extra_pages.begin(), extra_pages.end(), sparse_case.extra_pool.page_size) > 0;
}

}  // namespace

ContractCases sparse_mla_cases() {
  ContractCases cases;
  for (const auto& [group, sparse_case] : check::sparse_mla_suite()) {
    if (is_of_group(group) && is_chosen(sparse_case)) {
      cases.push_back(reference_case(group + " | " + describe(sparse_case), sparse_case));
    }
  }
  return cases;
}

}  // namespace attnjit::contract
