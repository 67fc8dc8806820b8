#include "attnjit/merge_states.hpp"

#include <limits>
#include <string>

#include <fmt/format.h>

#include "attention_tensors.hpp"
#include "attnjit/kernel_launch.hpp"
#include "interface/merge_states_arguments.h"
#include "tensor_checks.hpp"

namespace attnjit {
namespace {

using namespace kernel_interface;

void check_out(TensorChecks& checks, std::string_view name, const TensorView& out,
               const AttentionDescriptor& descriptor, std::int64_t tokens, std::int64_t heads,
               bool is_written) {
  if (checks.require_shape(name, out, descriptor.dtype_out,
                           {tokens, heads, descriptor.head_dim_v})) {
    checks.require_strides(name, out, elements_per_16_bytes, 16);
    if (is_written) {
      checks.require_distinct(name, out);
    }
  }
}

void check_call(const AttentionDescriptor& descriptor, const MergeStatesCall& call) {
  TensorChecks checks;
  if (call.partials.empty() || call.partials.size() > most_partials) {
    checks.add("partials", fmt::format("{}", call.partials.size()),
               fmt::format("must be 1 to {}", most_partials),
               "merge in rounds: the result of one is a part of the next");
  }
  checks.require_shape("out", call.out, descriptor.dtype_out,
                       {TensorChecks::any, TensorChecks::any, descriptor.head_dim_v});
  checks.finish();
  const std::int64_t tokens = call.out.shape[0];
  const std::int64_t heads = call.out.shape[1];
  check_out(checks, "out", call.out, descriptor, tokens, heads, true);
  if (call.lse.data != nullptr &&
      checks.require_shape("lse", call.lse, DataType::fp32, {tokens, heads})) {
    checks.require_distinct("lse", call.lse);
  }
  for (std::size_t i = 0; i < call.partials.size(); ++i) {
    const PartialAttention& partial = call.partials[i];
    check_out(checks, fmt::format("partials[{}].out", i), partial.out, descriptor, tokens, heads,
              false);
    const std::string lse = fmt::format("partials[{}].lse", i);
    if (checks.require_shape(lse, partial.lse, DataType::fp32, {tokens, heads})) {
      checks.require_readable(lse, partial.lse);
    }
  }
  checks.finish();
}

StateStrides strides_of(const TensorView& out, const TensorView& lse) {
  return {out.strides[0], out.strides[1], lse.strides[0], lse.strides[1]};
}

}  // namespace

AttentionDescriptor merge_states_descriptor(int head_dim, DataType dtype) {
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::merge_states;
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = dtype;
  descriptor.head_dim_qk = descriptor.head_dim_v = head_dim;
  descriptor.value_source = ValueSource::prefix_of_k;  // as wide as any output
  descriptor.num_q_heads = descriptor.num_kv_heads = 1;
  descriptor.max_seqlen_q = 0;
  return descriptor;
}

void merge_attention_states(const PreparedMerge& kernel, const MergeStatesCall& call,
                            CUstream_st* stream) {
  check_call(kernel.descriptor, call);
  MergeStatesArguments arguments = {};
  for (std::size_t i = 0; i < call.partials.size(); ++i) {
    const PartialAttention& partial = call.partials[i];
    arguments.partials[i] = {partial.out.data, static_cast<const float*>(partial.lse.data),
                             strides_of(partial.out, partial.lse)};
  }
  arguments.out = call.out.data;
  arguments.lse = static_cast<float*>(call.lse.data);
  arguments.strides = strides_of(call.out, call.lse);
  arguments.num_rows = call.out.shape[0] * call.out.shape[1];
  arguments.num_heads = static_cast<int>(call.out.shape[1]);
  arguments.num_partials = static_cast<int>(call.partials.size());
  if (arguments.num_rows == 0) {
    return;
  }
  const std::int64_t rows_per_block =
      kernel.config.num_threads / (kernel.config.head_dim_v / elements_per_16_bytes);
  const std::int64_t blocks = (arguments.num_rows + rows_per_block - 1) / rows_per_block;
  if (blocks > std::numeric_limits<int>::max()) {
    TensorChecks checks;
    checks.add("out", describe(call.out),
               fmt::format("must be at most {} rows of tokens and heads",
                           rows_per_block * std::numeric_limits<int>::max()),
               "merge the tokens in several calls");
    checks.finish();
  }
  launch(kernel.kernel, {.x = static_cast<unsigned>(blocks)}, stream, &arguments);
}

}  // namespace attnjit
