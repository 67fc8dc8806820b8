#include "contract_run.hpp"

#include <algorithm>
#include <exception>

#include "contract_gpu.hpp"
#include "prepare_kernels.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

check::CheckResult run_case(contract::ContractGpu* gpu, const contract::ContractCase& each) {
  try {
    if (each.on_host) {
      return each.on_host();
    }
    return gpu != nullptr && each.on_gpu ? each.on_gpu(*gpu)
                                         : contract::result_of("not run: it needs a GPU");
  } catch (const std::exception& error) {
    return contract::result_of(error.what());
  }
}

std::vector<CheckedRequirement> run_all(contract::ContractGpu* gpu,
                                        const std::vector<contract::Requirement>& requirements) {
  std::vector<CheckedRequirement> checked;
  for (const contract::Requirement& requirement : requirements) {
    print_message("{}\n", requirement.id);
    checked.push_back({requirement, {}});
    for (const contract::ContractCase& each : requirement.cases) {
      checked.back().results.push_back(run_case(gpu, each));
    }
  }
  return checked;
}

}  // namespace

bool is_met(const CheckedRequirement& checked) {
  return checked.requirement.not_covered.empty() && !checked.results.empty() &&
         std::all_of(checked.results.begin(), checked.results.end(),
                     [](const check::CheckResult& result) { return result.passed; });
}

bool needs_gpu(const std::vector<contract::Requirement>& requirements) {
  return std::any_of(requirements.begin(), requirements.end(), [](const auto& requirement) {
    return std::any_of(requirement.cases.begin(), requirement.cases.end(),
                       [](const contract::ContractCase& each) { return bool{each.on_gpu}; });
  });
}

std::vector<CheckedRequirement> run_requirements(
    AttentionRuntime& runtime, int device, const std::vector<contract::Requirement>& requirements) {
  std::vector<AttentionDescriptor> descriptors;
  for (const contract::Requirement& requirement : requirements) {
    for (const contract::ContractCase& each : requirement.cases) {
      descriptors.insert(descriptors.end(), each.kernels.begin(), each.kernels.end());
    }
  }
  print_message("preparing the kernels of {} requirements\n", requirements.size());
  prepare_kernels(runtime, device, descriptors);
  contract::ContractGpu gpu(runtime, device);
  return run_all(&gpu, requirements);
}

std::vector<CheckedRequirement> run_requirements(
    const std::vector<contract::Requirement>& requirements) {
  return run_all(nullptr, requirements);
}

}  // namespace attnjit
