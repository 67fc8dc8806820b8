#include "check_run.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/shown_text.hpp"
#include "attnjit/target_device_query.hpp"
#include "command.hpp"
#include "decode_checker.hpp"
#include "prefill_checker.hpp"
#include "sparse_mla_checker.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

bool is_token_sparse(const AttentionDescriptor& descriptor) {
  return descriptor.operation == Operation::sparse_mla_decode ||
         descriptor.operation == Operation::sparse_mla_prefill;
}

void prepare(AttentionRuntime& runtime, int device, const AttentionDescriptor& descriptor) {
  if (descriptor.operation == Operation::decode) {
    runtime.prepare_decode(descriptor, device);
  } else if (is_token_sparse(descriptor)) {
    runtime.prepare_sparse_mla(descriptor, device);
  } else {
    runtime.prepare_prefill(descriptor, device);
  }
}

// Compiles what the cases need on all cores; an error surfaces again, with its case, when that
// runs.
void prepare_all(AttentionRuntime& runtime, int device, const std::vector<CheckCase>& cases) {
  std::vector<AttentionDescriptor> descriptors;
  for (const CheckCase& check_case : cases) {
    if (!runs_kernels(check_case)) {
      continue;
    }
    const AttentionDescriptor& descriptor = descriptor_of(check_case);
    if (std::find(descriptors.begin(), descriptors.end(), descriptor) == descriptors.end()) {
      descriptors.push_back(descriptor);
    }
  }
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < descriptors.size(); i = next++) {
      try {
        prepare(runtime, device, descriptors[i]);
      } catch (const std::exception&) {
        continue;
      }
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
}

// One of each operation; all share the runtime's kernels. A refusal needs none.
struct Checkers {
  check::DecodeChecker decode;
  check::PrefillChecker prefill;
  check::SparseMlaChecker sparse_mla;

  check::CheckResult check(const check::SuiteCase& suite_case) { return decode.check(suite_case); }
  check::CheckResult check(const check::PrefillSuiteCase& suite_case) {
    return prefill.check(suite_case);
  }
  check::CheckResult check(const check::SparseMlaSuiteCase& suite_case) {
    return sparse_mla.check(suite_case.sparse_case);
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
  if (cases.empty()) {
    throw UsageError(
        fmt::format("--filter {}: no case holds this text; fix: run attnjit check "
                    "without --filter to see the groups",
                    shown_text(text)));
  }
  return cases;
}

CheckReport run_cases(AttentionRuntime& runtime, int device, const std::vector<CheckCase>& cases) {
  constexpr std::size_t cases_per_message = 200;
  CheckReport report;
  report.card = query_target_device(device).name;
  print_message("preparing the kernels of {} cases\n", cases.size());
  prepare_all(runtime, device, cases);
  Checkers checkers = {check::DecodeChecker(runtime, device),
                       check::PrefillChecker(runtime, device),
                       check::SparseMlaChecker(runtime, device)};
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
