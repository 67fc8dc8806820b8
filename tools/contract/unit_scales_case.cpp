#include "unit_scales_case.hpp"

#include "contract_gpu.hpp"
#include "prefill_problem.hpp"

namespace attnjit::contract {
namespace {

check::CheckResult run_unscaled(ContractGpu& gpu, const check::PrefillCase& prefill_case) {
  check::PrefillCase unscaled = prefill_case;
  unscaled.descriptor.scales_q = unscaled.descriptor.scales_kv = ScaleGrain::none;
  unscaled.descriptor.scale_block = 0;
  check::PrefillProblem problem(gpu.kernels, unscaled, gpu.stream, unscaled.seed);
  problem.poison_outputs(gpu.stream);
  const auto kernel = gpu.runtime.prepare_prefill(prefill_case.descriptor, gpu.device());
  run_prefill(*kernel, problem.call(), gpu.stream.handle());
  return compare(gpu, problem.reference_call(), check::count_values(unscaled));
}

}  // namespace

ContractCase unit_scales_case(const std::string& name, const check::PrefillCase& prefill_case) {
  return {.name = name,
          .proof = Proof::reference,
          .kernels = {prefill_case.descriptor},
          .on_gpu = [prefill_case](ContractGpu& gpu) { return run_unscaled(gpu, prefill_case); }};
}

}  // namespace attnjit::contract
