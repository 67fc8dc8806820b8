#include "check_run.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/target_device_query.hpp"
#include "contract_gpu.hpp"
#include "prepare_kernels.hpp"
#include "sparse_mla_checker.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

bool is_token_sparse(const AttentionDescriptor& descriptor) {
  return descriptor.operation == Operation::sparse_mla_decode ||
         descriptor.operation == Operation::sparse_mla_prefill;
}

// How each kind of case is checked. A refusal needs no GPU.
struct Checkers {
  contract::ContractGpu gpu;

  check::CheckResult check(const check::SuiteCase& suite_case) {
    return gpu.decode.check(suite_case);
  }
  check::CheckResult check(const check::PrefillSuiteCase& suite_case) {
    return gpu.prefill.check(suite_case);
  }
  check::CheckResult check(const FacadeCase& facade_case) {
    return contract::as_case(facade_case.call).on_gpu(gpu);
  }
  check::CheckResult check(const check::SparseMlaSuiteCase& suite_case) {
    return gpu.sparse_mla.check(suite_case.sparse_case);
  }
  template <typename Illegal>
  check::CheckResult check(const RefusalCase<Illegal>& refusal_case) {
    return check::check_refusal(refusal_case.illegal);
  }
};

check::CheckResult run_case(Checkers& checkers, const CheckCase& check_case) {
  try {
    return std::visit([&](const auto& suite_case) { return checkers.check(suite_case); },
                      check_case);
  } catch (const std::exception& error) {
    check::CheckResult result;
    result.failure = error.what();
    return result;
  }
}

}  // namespace

bool has_passed(const CheckReport& report) {
  return report.num_failed == 0 &&
         std::all_of(report.requirements.begin(), report.requirements.end(), is_met);
}

std::vector<CheckCase> step_cases(const std::vector<AttentionDescriptor>& descriptors, int batch,
                                  int seqlen_kv) {
  std::vector<CheckCase> cases;
  for (const AttentionDescriptor& descriptor : descriptors) {
    if (is_token_sparse(descriptor)) {
      cases.emplace_back(check::sparse_mla_step(descriptor, batch));
      continue;
    }
    check::SuiteCase suite_case;
    suite_case.group = "decode step";
    suite_case.decode_case.descriptor = descriptor;
    suite_case.decode_case.seqlen_q = descriptor.max_seqlen_q;
    suite_case.decode_case.seq_lens =
        check::varied_lengths(batch, std::max(1, seqlen_kv / 2), cases.size() + 1);
    suite_case.decode_case.seq_lens.front() = seqlen_kv;
    if (batch > 1) {
      suite_case.decode_case.seq_lens.back() = 0;
    }
    cases.emplace_back(std::move(suite_case));
  }
  return cases;
}

std::vector<CheckCase> filter_cases(std::vector<CheckCase> cases, const std::string& text) {
  std::erase_if(cases, [&](const CheckCase& check_case) {
    return group_of(check_case).find(text) == std::string::npos &&
           describe(check_case).find(text) == std::string::npos;
  });
  return cases;
}

CheckReport run_cases(AttentionRuntime& runtime, int device, const std::vector<CheckCase>& cases) {
  constexpr std::size_t cases_per_message = 200;
  CheckReport report;
  report.card = query_target_device(device).name;
  print_message("preparing the kernels of {} cases\n", cases.size());
  std::vector<AttentionDescriptor> descriptors;
  for (const CheckCase& check_case : cases) {
    const std::vector<AttentionDescriptor> kernels = kernels_of(check_case);
    descriptors.insert(descriptors.end(), kernels.begin(), kernels.end());
  }
  prepare_kernels(runtime, device, descriptors);
  Checkers checkers = {contract::ContractGpu(runtime, device)};
  std::string group;
  for (const CheckCase& check_case : cases) {
    if (group_of(check_case) != group) {
      group = group_of(check_case);
      print_message("{}\n", group);
    }
    report.cases.push_back({check_case, run_case(checkers, check_case), ""});
    report.num_failed += report.cases.back().result.passed ? 0 : 1;
    if (report.cases.size() % cases_per_message == 0) {
      print_message("{} of {} cases, {} failed\n", report.cases.size(), cases.size(),
                    report.num_failed);
    }
  }
  return report;
}

}  // namespace attnjit
