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
#include "standard_streams.hpp"

namespace attnjit {
namespace {

using check::SuiteCase;

// Compiles what the cases need on all cores; an error surfaces again, with its case, when that
// runs.
void prepare_all(AttentionRuntime& runtime, int device, const std::vector<SuiteCase>& cases) {
  std::vector<AttentionDescriptor> descriptors;
  for (const SuiteCase& suite_case : cases) {
    const AttentionDescriptor& descriptor = suite_case.decode_case.descriptor;
    if (std::find(descriptors.begin(), descriptors.end(), descriptor) == descriptors.end()) {
      descriptors.push_back(descriptor);
    }
  }
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < descriptors.size(); i = next++) {
      try {
        runtime.prepare_decode(descriptors[i], device);
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

check::CheckResult run_case(check::DecodeChecker& checker, const SuiteCase& suite_case) {
  try {
    return checker.check(suite_case);
  } catch (const std::exception& error) {
    check::CheckResult result;
    result.failure = error.what();
    return result;
  }
}

}  // namespace

std::vector<SuiteCase> step_cases(const std::vector<AttentionDescriptor>& descriptors, int batch,
                                  int seqlen_kv) {
  std::vector<SuiteCase> cases;
  for (const AttentionDescriptor& descriptor : descriptors) {
    SuiteCase suite_case;
    suite_case.group = "decode step";
    suite_case.decode_case.descriptor = descriptor;
    suite_case.decode_case.seqlen_q = descriptor.max_seqlen_q;
    suite_case.decode_case.seq_lens =
        check::varied_lengths(batch, std::max(1, seqlen_kv / 2), cases.size() + 1);
    suite_case.decode_case.seq_lens.front() = seqlen_kv;
    if (batch > 1) {
      suite_case.decode_case.seq_lens.back() = 0;
    }
    cases.push_back(std::move(suite_case));
  }
  return cases;
}

std::vector<SuiteCase> filter_cases(std::vector<SuiteCase> cases, const std::string& text) {
  std::erase_if(cases, [&](const SuiteCase& suite_case) {
    return suite_case.group.find(text) == std::string::npos &&
           describe(suite_case.decode_case).find(text) == std::string::npos;
  });
  if (cases.empty()) {
    throw UsageError(
        fmt::format("--filter {}: no case holds this text; fix: run attnjit check "
                    "without --filter to see the groups",
                    shown_text(text)));
  }
  return cases;
}

CheckReport run_cases(AttentionRuntime& runtime, int device, const std::vector<SuiteCase>& cases) {
  CheckReport report;
  report.card = query_target_device(device).name;
  print_message("preparing the kernels of {} cases\n", cases.size());
  prepare_all(runtime, device, cases);
  check::DecodeChecker checker(runtime, device);
  std::string group;
  for (const SuiteCase& suite_case : cases) {
    if (suite_case.group != group) {
      group = suite_case.group;
      print_message("{}\n", group);
    }
    report.cases.push_back({suite_case, run_case(checker, suite_case)});
    report.num_failed += report.cases.back().result.passed ? 0 : 1;
  }
  return report;
}

}  // namespace attnjit
