// Prefill on the GPU against the fp64 reference: the whole suite of `attnjit check`, and proof that
// the check can fail.
#include <vector>

#include "catch.hpp"
#include "check_kernels.hpp"
#include "gpu_runtime.hpp"
#include "prefill_checker.hpp"
#include "prefill_problem.hpp"
#include "prefill_suite.hpp"
#include "reference_comparison.hpp"

namespace attnjit {
namespace {

using check::CheckResult;
using check::Comparison;
using check::PrefillCase;
using check::PrefillProblem;

TEST_CASE("every case of the prefill suite agrees with the fp64 reference") {
  check::PrefillChecker checker(gpu_runtime(), 0);
  for (const check::PrefillSuiteCase& suite_case : check::prefill_suite()) {
    const CheckResult result = checker.check(suite_case);
    INFO(suite_case.group << ": " << describe(suite_case.prefill_case) << ": " << result.failure);
    CHECK(result.passed);
  }
}

PrefillCase example_case() {
  std::vector<check::PrefillSuiteCase> suite;
  return check::add_prefill_case(suite, "example", check::paged_descriptor(12, 4, 128),
                                 {{100, 300}, {65, 65}, {30, 20}});
}

// A problem whose outputs another call wrote, compared with the reference of its own.
class Comparer {
 public:
  Comparer() : kernels_(check::load_check_kernels(gpu_runtime().provider(), 0)) {}

  PrefillProblem make_problem(const PrefillCase& prefill_case) const {
    PrefillProblem problem(kernels_, prefill_case, stream_, prefill_case.seed);
    problem.poison_outputs(stream_);
    return problem;
  }

  CheckResult run_and_compare(const PrefillProblem& problem, const PrefillCall& call) const {
    const AttentionDescriptor& descriptor = problem.prefill_case().descriptor;
    run_prefill(*gpu_runtime().prepare_prefill(descriptor, 0), call, stream_.handle());
    return compare(problem);
  }

  CheckResult compare(const PrefillProblem& problem) const {
    return check::judge(
        compare_with_reference(kernels_, problem.reference_call(), stream_, check::Tolerance()),
        count_values(problem.prefill_case()), check::Tolerance());
  }

  const DeviceStream& stream() const { return stream_; }

 private:
  DeviceStream stream_{0};
  check::CheckKernels kernels_;
};

TEST_CASE("a prefill that computes what was asked passes the comparison") {
  const Comparer comparer;
  const PrefillProblem problem = comparer.make_problem(example_case());
  const CheckResult result = comparer.run_and_compare(problem, problem.call());
  CHECK(result.passed);
  CHECK(result.comparison.compared == (100 + 65 + 30) * 12 * 129);
}

TEST_CASE("a prefill with another scale fails the comparison") {
  const Comparer comparer;
  const PrefillProblem problem = comparer.make_problem(example_case());
  PrefillCall call = problem.call();
  call.softmax_scale *= 1.25F;
  const Comparison comparison = comparer.run_and_compare(problem, call).comparison;
  CHECK(comparison.worst_excess > 1);
  CHECK(comparison.worst_lse_excess > 1);
}

TEST_CASE("a prefill whose outputs were not written fails the comparison") {
  const Comparer comparer;
  const PrefillProblem problem = comparer.make_problem(example_case());
  CHECK(comparer.compare(problem).comparison.mismatches == (100 + 65 + 30) * 12 * 129);
}

TEST_CASE("a prefill whose mask is off by one key fails the comparison") {
  const Comparer comparer;
  PrefillCase prefill_case = example_case();
  prefill_case.query_positions = {200, 0, -10};
  const PrefillProblem problem = comparer.make_problem(prefill_case);
  CHECK(comparer.run_and_compare(problem, problem.call()).passed);
  for (const int shift : {-1, 1}) {
    std::vector<int> positions = prefill_case.query_positions;
    for (int& position : positions) {
      position += shift;
    }
    const DeviceBuffer shifted = make_device_buffer<int>(0, positions, comparer.stream().handle());
    PrefillCall call = problem.call();
    call.query_positions.data = shifted.data();
    CHECK_FALSE(comparer.run_and_compare(problem, call).passed);
  }
}

TEST_CASE("a prefill that writes where no query stands fails the comparison") {
  const Comparer comparer;
  PrefillCase prefill_case = example_case();
  prefill_case.query_layout = check::QueryLayout::bshd;
  const PrefillProblem problem = comparer.make_problem(prefill_case);
  CHECK(comparer.run_and_compare(problem, problem.call()).passed);
  PrefillCall call = problem.call();
  const std::vector<int> more_queries = {100, 66, 30};
  const DeviceBuffer lengths = make_device_buffer<int>(0, more_queries, comparer.stream().handle());
  call.q_lens.data = lengths.data();
  CHECK(comparer.run_and_compare(problem, call).comparison.mismatches > 0);
}

}  // namespace
}  // namespace attnjit
