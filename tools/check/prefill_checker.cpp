#include "prefill_checker.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "attnjit/prefill.hpp"
#include "prefill_tensors.hpp"
#include "random_tokens.hpp"

namespace attnjit::check {
namespace {

// Elements of out between its rows, where rows are padded: nothing may be written there.
bool is_padding_untouched(const PrefillProblem& problem, const std::vector<unsigned char>& bytes) {
  const PrefillCase& prefill_case = problem.prefill_case();
  const TensorView& out = problem.call().out;
  const std::size_t token = out.rank == 3 ? 0 : 1;
  const auto element_bytes = static_cast<std::size_t>(size_bytes(out.dtype));
  const auto row_bytes = static_cast<std::size_t>(out.strides.at(token)) * element_bytes;
  const std::size_t padding_bytes =
      static_cast<std::size_t>(prefill_case.row_padding) * element_bytes;
  const auto out_bytes = static_cast<std::size_t>(span_bytes(out));
  // Whatever the layout, memory is rows of one length; the last has no padding behind it.
  for (std::size_t row = row_bytes; row <= out_bytes && padding_bytes > 0; row += row_bytes) {
    for (std::size_t i = row - padding_bytes; i < row; ++i) {
      if (bytes[i] != 0xff) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

PrefillChecker::PrefillChecker(AttentionRuntime& runtime, int device)
    : runtime_(runtime),
      stream_(device),
      kernels_(load_check_kernels(runtime.provider(), device)) {}

std::vector<unsigned char> PrefillChecker::run(PrefillProblem& problem,
                                               const PreparedPrefill& kernel) {
  problem.poison_outputs(stream_);
  run_prefill(kernel, problem.call(), stream_.handle());
  return problem.download_outputs(stream_);
}

CheckResult PrefillChecker::check(const PrefillSuiteCase& suite_case) {
  return suite_case.is_permutation ? check_permutation(suite_case.prefill_case)
                                   : check(suite_case.prefill_case);
}

CheckResult PrefillChecker::check(const PrefillCase& prefill_case) {
  const auto kernel = runtime_.prepare_prefill(prefill_case.descriptor, stream_.device());
  PrefillProblem problem(kernels_, prefill_case, stream_, prefill_case.seed);
  const std::vector<unsigned char> first = run(problem, *kernel);
  const ReferenceResult reference = compute_reference(kernels_, problem.reference_call(), stream_);
  CheckResult result =
      judge(compare(kernels_, problem.reference_call(), reference, stream_, tolerance_),
            count_values(prefill_case), tolerance_);
  if (result.passed && run(problem, *kernel) != first) {
    result.failure = "a second run gives other bits";
  } else if (result.passed && !is_padding_untouched(problem, first)) {
    result.failure = "something was written between the rows of out";
  }
  result.passed = result.failure.empty();
  const bool may_split = !prefill_case.descriptor.batch_invariant;
  return result.passed && may_split ? check_split(problem, *kernel, reference, result) : result;
}

// Once more with the keys in parts, as many as the seed says: some may have no keys.
CheckResult PrefillChecker::check_split(PrefillProblem& problem, const PreparedPrefill& kernel,
                                        const ReferenceResult& reference,
                                        const CheckResult& unsplit) {
  const PrefillCase& prefill_case = problem.prefill_case();
  PrefillPlan plan;
  plan.num_splits = static_cast<int>(2 + prefill_case.seed % 31);
  const TensorView& q = problem.call().q;
  const std::int64_t tokens = q.rank == 3 ? q.shape[0] : q.shape[0] * q.shape[1];
  const std::int64_t row_bytes = (std::int64_t{kernel.config.head_dim_v} + 2) * 4;
  const std::int64_t bytes =
      plan.num_splits * tokens * prefill_case.descriptor.num_q_heads * row_bytes;
  const DeviceBuffer workspace = poisoned_buffer(stream_, bytes);
  problem.poison_outputs(stream_);
  run_prefill(kernel, problem.call(), plan, workspace.data(), bytes, stream_.handle());
  CheckResult result =
      judge(compare(kernels_, problem.reference_call(), reference, stream_, tolerance_),
            count_values(prefill_case), tolerance_);
  if (result.passed && !is_padding_untouched(problem, problem.download_outputs(stream_))) {
    result.failure = "something was written between the rows of out";
  }
  if (!result.failure.empty()) {
    result.failure = fmt::format("in {} parts, {}", plan.num_splits, result.failure);
  }
  result.passed = result.failure.empty();
  const bool is_worse =
      result.comparison.worst_excess > unsplit.comparison.worst_excess || !result.passed;
  return is_worse ? result : unsplit;
}

CheckResult PrefillChecker::check_permutation(const PrefillCase& prefill_case) {
  const auto kernel = runtime_.prepare_prefill(prefill_case.descriptor, stream_.device());
  std::vector<std::vector<unsigned char>> outputs;
  for (const std::uint64_t table_seed : {prefill_case.seed, prefill_case.seed + 1000}) {
    PrefillProblem problem(kernels_, prefill_case, stream_, table_seed);
    outputs.push_back(run(problem, *kernel));
  }
  CheckResult result;
  result.passed = outputs[0] == outputs[1];
  result.failure = result.passed ? "" : "outputs differ after the pages were permuted";
  return result;
}

}  // namespace attnjit::check
