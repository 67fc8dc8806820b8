#include "reference_comparison.hpp"

#include <fmt/format.h>

#include "attnjit/kernel_launch.hpp"
#include "token_access.hpp"

namespace attnjit::check {
namespace {

std::string find_failure(const CheckResult& result, std::int64_t num_values,
                         const Tolerance& tolerance) {
  const Comparison& comparison = result.comparison;
  if (comparison.mismatches > 0) {
    return fmt::format(
        "{} values are NaN, unwritten, not finite where the reference is, or of no query",
        comparison.mismatches);
  }
  if (comparison.compared != num_values) {
    return fmt::format("{} values were compared in place of {}", comparison.compared, num_values);
  }
  if (comparison.worst_excess > 1) {
    return fmt::format("an output is off by {:.2f} times its tolerance", comparison.worst_excess);
  }
  if (comparison.worst_lse_excess > 1) {
    return fmt::format("an LSE is off by {:.2f} times its tolerance", comparison.worst_lse_excess);
  }
  if (result.cosine_distance > tolerance.cosine_distance) {
    return fmt::format("the cosine distance {:.2e} exceeds {:.0e}", result.cosine_distance,
                       tolerance.cosine_distance);
  }
  return "";
}

}  // namespace

// The products of two 16-bit elements are exact in fp32; the sum is not. A tensor core adds 16 of
// them to the sum per instruction, one instruction after the other, so that a score passes
// head_dim / 16 roundings in sequence, and up to 16 more within an instruction. In the worst case
// each is off by 2^-24 of the magnitude that has been summed until then. (The hardware truncates,
// which is off by twice that; but halfway through, half of the magnitude has been summed.) That
// every rounding goes the same way is what makes this a bound and not an estimate, which would
// grow with the root of the count.
double Tolerance::score_rounding(int head_dim) {
  constexpr int products_per_instruction = 16;
  constexpr double rounding = 0x1p-24;
  const int instructions = (head_dim + products_per_instruction - 1) / products_per_instruction;
  return (instructions + products_per_instruction) * rounding;
}

Comparison compare(const CheckKernels& kernels, const ReferenceCall& call,
                   const ReferenceResult& reference, const DeviceStream& stream,
                   const Tolerance& tolerance) {
  const AttentionDescriptor& descriptor = call.descriptor;
  DeviceBuffer result(stream.device(), sizeof(Comparison));
  result.fill(0, stream.handle());
  const std::int64_t rows = call.num_rows() * descriptor.num_q_heads;
  const TensorView& out = call.call.out;
  CompareArguments arguments = {};
  arguments.out = out.data;
  arguments.lse = static_cast<const float*>(call.call.lse.data);
  arguments.reference_out = static_cast<const double*>(reference.out.data());
  arguments.reference_lse = static_cast<const double*>(reference.lse.data());
  arguments.reference_magnitude = static_cast<const double*>(reference.magnitude.data());
  arguments.result = static_cast<Comparison*>(result.data());
  arguments.out_strides = query_strides(out);
  arguments.lse_strides = lse_strides(call.call.lse);
  arguments.num_rows = rows;
  arguments.extent = static_cast<int>(out.rank == 3 ? out.shape[0] : out.shape[1]);
  arguments.num_q_heads = descriptor.num_q_heads;
  arguments.head_dim_v = descriptor.head_dim_v;
  arguments.kind = element_kind(descriptor.dtype_out);
  arguments.out_scale = call.out_scale;
  arguments.absolute = tolerance.absolute;
  arguments.relative = tolerance.relative;
  arguments.lse_absolute = tolerance.lse_absolute;
  arguments.lse_relative = tolerance.lse_relative;
  arguments.lse_rounding = Tolerance::score_rounding(descriptor.head_dim_qk);
  if (rows > 0) {
    launch(kernels.compare_outputs, {static_cast<unsigned>(rows), 1, 1}, stream.handle(),
           &arguments);
  }
  return download_values<Comparison>(result, 1, stream.handle()).front();
}

Comparison compare_with_reference(const CheckKernels& kernels, const ReferenceCall& call,
                                  const DeviceStream& stream, const Tolerance& tolerance) {
  return compare(kernels, call, compute_reference(kernels, call, stream), stream, tolerance);
}

Comparison compare_with_reference(const CheckKernels& kernels, const DecodeProblem& problem,
                                  const DeviceStream& stream, const Tolerance& tolerance) {
  return compare_with_reference(kernels, problem.reference_call(), stream, tolerance);
}

CheckResult judge(const Comparison& comparison, std::int64_t num_values,
                  const Tolerance& tolerance) {
  CheckResult result;
  result.comparison = comparison;
  const double squares = comparison.squares;
  result.cosine_distance = squares > 0 ? 1.0 - 2.0 * comparison.dot / squares : 0.0;
  result.failure = find_failure(result, num_values, tolerance);
  result.passed = result.failure.empty();
  return result;
}

}  // namespace attnjit::check
