#include "sparse_mla_checker.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "attnjit/kernel_launch.hpp"
#include "attnjit/sparse_mla.hpp"
#include "token_access.hpp"

namespace attnjit::check {
namespace {

// Of q, out, lse or max_logits: query tokens of a prefill are requests of one.
kernel_interface::QueryStrides row_strides(const TensorView& view) {
  const auto& strides = view.strides;
  const bool is_numbers = view.dtype == DataType::fp32;
  if (view.rank == 4) {
    return {strides[0], strides[1], strides[2]};
  }
  return is_numbers && view.rank == 3
             ? kernel_interface::QueryStrides{strides[0], strides[2], strides[1]}
             : kernel_interface::QueryStrides{strides[0], 0, strides[1]};
}

}  // namespace

SparseMlaChecker::SparseMlaChecker(AttentionRuntime& runtime, int device)
    : runtime_(runtime), stream_(device), kernels_(load_check_kernels(runtime.provider(), device)) {
  tolerance_.lse_relative = 2.01 / 65536;
}

std::vector<unsigned char> SparseMlaChecker::run(SparseMlaProblem& problem,
                                                 const PreparedSparseMla& kernel) {
  problem.poison_outputs(stream_);
  run_sparse_mla(kernel, problem.call(), stream_.handle());
  return problem.download_outputs(stream_);
}

Comparison SparseMlaChecker::compare(const SparseMlaProblem& problem,
                                     const SparseMlaReference& reference, const TensorView& numbers,
                                     const DeviceBuffer& reference_numbers) {
  const SparseMlaCase& sparse_case = problem.sparse_case();
  const AttentionDescriptor& descriptor = sparse_case.descriptor;
  DeviceBuffer result(stream_.device(), sizeof(Comparison));
  result.fill(0, stream_.handle());
  CompareArguments arguments = {};
  arguments.out = problem.call().out.data;
  arguments.lse = static_cast<const float*>(numbers.data);
  arguments.reference_out = static_cast<const double*>(reference.out.data());
  arguments.reference_lse = static_cast<const double*>(reference_numbers.data());
  arguments.reference_magnitude = static_cast<const double*>(reference.magnitude.data());
  arguments.lse_rounding = Tolerance::score_rounding(descriptor.head_dim_qk);
  arguments.result = static_cast<Comparison*>(result.data());
  arguments.out_strides = row_strides(problem.call().out);
  arguments.lse_strides = row_strides(numbers);
  arguments.num_rows = std::int64_t{sparse_case.num_query_tokens()} * descriptor.num_q_heads;
  arguments.extent = sparse_case.seqlen_q;
  arguments.num_q_heads = descriptor.num_q_heads;
  arguments.head_dim_v = descriptor.head_dim_v;
  arguments.kind = element_kind(descriptor.dtype_out);
  arguments.absolute = tolerance_.absolute;
  arguments.relative = tolerance_.relative;
  arguments.lse_absolute = tolerance_.lse_absolute;
  arguments.lse_relative = tolerance_.lse_relative;
  launch(kernels_.compare_outputs, {static_cast<unsigned>(arguments.num_rows), 1, 1},
         stream_.handle(), &arguments);
  return download_values<Comparison>(result, 1, stream_.handle()).front();
}

CheckResult SparseMlaChecker::check(const SparseMlaCase& sparse_case) {
  const auto kernel = runtime_.prepare_sparse_mla(sparse_case.descriptor, stream_.device());
  SparseMlaProblem problem(kernels_, sparse_case, stream_, 0xff);
  const std::vector<unsigned char> outputs = run(problem, *kernel);
  const SparseMlaReference reference = problem.compute_reference(stream_);
  CheckResult result = judge(compare(problem, reference, problem.call().lse, reference.lse),
                             count_values(sparse_case), tolerance_);
  if (result.passed && sparse_case.wants_max_logits) {
    const Comparison largest =
        compare(problem, reference, problem.call().max_logits, reference.max_logits);
    if (largest.mismatches > 0 || largest.worst_lse_excess > 1) {
      result.failure = fmt::format("max_logits: {} mismatches, off by {:.2f} times the tolerance",
                                   largest.mismatches, largest.worst_lse_excess);
    }
  }
  if (result.passed && result.failure.empty()) {
    SparseMlaProblem without_poison(kernels_, sparse_case, stream_, 0);
    if (run(without_poison, *kernel) != outputs) {
      result.failure = "what no index names changes the result";
    } else if (!problem.is_padding_untouched(outputs)) {
      result.failure = "something was written between or behind the rows";
    }
  }
  result.passed = result.failure.empty();
  return result;
}

}  // namespace attnjit::check
