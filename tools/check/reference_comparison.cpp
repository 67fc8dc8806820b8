#include "reference_comparison.hpp"

#include "attnjit/kernel_launch.hpp"
#include "decode_arguments.hpp"
#include "reference_decode.hpp"

namespace attnjit::check {

Comparison compare_with_reference(const CheckKernels& kernels, const DecodeProblem& problem,
                                  const DeviceStream& stream, const Tolerance& tolerance) {
  const DecodeCase& decode_case = problem.decode_case();
  const AttentionDescriptor& descriptor = decode_case.descriptor;
  const std::int64_t rows =
      std::int64_t{decode_case.batch()} * decode_case.seqlen_q * descriptor.num_q_heads;
  const ReferenceResult reference = compute_reference(kernels, problem, stream);
  DeviceBuffer result(stream.device(), sizeof(Comparison));
  result.fill(0, stream.handle());
  const kernel_interface::PagedDecodeArguments call =
      make_decode_arguments(descriptor, problem.call());
  CompareArguments arguments = {};
  arguments.out = call.out;
  arguments.lse = call.lse;
  arguments.reference_out = static_cast<const double*>(reference.out.data());
  arguments.reference_lse = static_cast<const double*>(reference.lse.data());
  arguments.result = static_cast<Comparison*>(result.data());
  arguments.out_strides = call.out_strides;
  arguments.lse_strides = call.lse_strides;
  arguments.num_rows = rows;
  arguments.seqlen_q = decode_case.seqlen_q;
  arguments.num_q_heads = descriptor.num_q_heads;
  arguments.head_dim_v = descriptor.head_dim_v;
  arguments.kind = element_kind(descriptor.dtype_out);
  arguments.absolute = tolerance.absolute;
  arguments.relative = tolerance.relative;
  arguments.lse_absolute = tolerance.lse_absolute;
  arguments.lse_relative = tolerance.lse_relative;
  launch(kernels.compare_decode, {static_cast<unsigned>(rows), 1, 1}, stream.handle(), &arguments);
  return download_values<Comparison>(result, 1, stream.handle()).front();
}

}  // namespace attnjit::check
