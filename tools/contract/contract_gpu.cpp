#include "contract_gpu.hpp"

#include <utility>

namespace attnjit::contract {

ContractGpu::ContractGpu(AttentionRuntime& attention_runtime, int device)
    : runtime(attention_runtime),
      stream(device),
      kernels(check::load_check_kernels(attention_runtime.provider(), device)),
      decode(attention_runtime, device),
      prefill(attention_runtime, device),
      sparse_mla(attention_runtime, device) {}

check::CheckResult compare(const ContractGpu& gpu, const check::ReferenceCall& reference,
                           std::int64_t num_values) {
  const check::Tolerance tolerance;
  return check::judge(check::compare_with_reference(gpu.kernels, reference, gpu.stream, tolerance),
                      num_values, tolerance);
}

check::CheckResult result_of(std::string failure) {
  check::CheckResult result;
  result.failure = std::move(failure);
  result.passed = result.failure.empty();
  return result;
}

}  // namespace attnjit::contract
