#include "random_data_case.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "contract_gpu.hpp"
#include "decode_problem.hpp"
#include "host_tensor.hpp"
#include "prefill_problem.hpp"

namespace attnjit::contract {
namespace {

// Of rows that are not poison.
bool has_equal_rows(HostTensor tensor) {
  std::set<std::vector<std::uint16_t>> rows;
  bool has_equal = false;
  for_each_row(tensor.view, [&](const RowIndex& index) {
    const std::uint16_t* const row = tensor.row(index);
    if (*row != poison_bits) {
      has_equal = !rows.insert({row, row + tensor.columns()}).second || has_equal;
    }
  });
  return has_equal || rows.size() < 2;
}

check::CheckResult judge_rows(const ContractGpu& gpu, const TensorView& k, const TensorView& v) {
  const bool has_equal = has_equal_rows(download(k, gpu.stream)) ||
                         (v.data != nullptr && has_equal_rows(download(v, gpu.stream)));
  return result_of(has_equal ? "rows of k or v are equal" : "");
}

}  // namespace

ContractCase random_data_case(const std::string& name, const check::DecodeCase& decode_case) {
  return {.name = name, .proof = Proof::property, .on_gpu = [decode_case](ContractGpu& gpu) {
            const check::DecodeProblem problem(gpu.kernels, decode_case, gpu.stream, 1);
            return judge_rows(gpu, problem.call().k_cache, problem.call().v_cache);
          }};
}

ContractCase random_data_case(const std::string& name, const check::PrefillCase& prefill_case) {
  return {.name = name, .proof = Proof::property, .on_gpu = [prefill_case](ContractGpu& gpu) {
            const check::PrefillProblem problem(gpu.kernels, prefill_case, gpu.stream, 1);
            return judge_rows(gpu, problem.call().k, problem.call().v);
          }};
}

}  // namespace attnjit::contract
