#include "suffix_case.hpp"

#include <algorithm>

#include "contract_gpu.hpp"
#include "prefill_problem.hpp"
#include "prefill_suite.hpp"

namespace attnjit::contract {
namespace {

constexpr int num_requests = 3;

check::PrefillCase prompt(const AttentionDescriptor& descriptor, int tokens) {
  std::vector<check::PrefillSuiteCase> suite;
  check::PrefillCase& prefill_case = check::add_prefill_case(
      suite, "", descriptor, check::Lengths(num_requests, {tokens, tokens}));
  prefill_case.query_layout = check::QueryLayout::bshd;
  return prefill_case;
}

// Tokens from `prefix` on of [batch, tokens, …], by dimension.
TensorView tokens_from(TensorView view, std::size_t dimension, int prefix) {
  view.data = static_cast<unsigned char*>(view.data) +
              prefix * view.strides.at(dimension) * size_bytes(view.dtype);
  view.shape.at(dimension) -= prefix;
  return view;
}

PrefillCall suffix_of(PrefillCall call, int prefix) {
  call.q = tokens_from(call.q, 1, prefix);
  call.out = tokens_from(call.out, 1, prefix);
  call.lse = tokens_from(call.lse, 2, prefix);
  return call;
}

// The problem of the whole prompt: all of its rows, or those of the suffix.
check::CheckResult run_rows(ContractGpu& gpu, const check::PrefillCase& prefill_case, int prefix) {
  check::PrefillProblem problem(gpu.kernels, prefill_case, gpu.stream, prefill_case.seed);
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  problem.poison_outputs(gpu.stream);
  check::ReferenceCall reference = problem.reference_call();
  reference.call = suffix_of(problem.call(), prefix);
  reference.max_queries -= prefix;
  run_prefill(*gpu.runtime.prepare_prefill(descriptor, gpu.device()), reference.call,
              gpu.stream.handle());
  const std::int64_t rows = std::int64_t{num_requests} * reference.max_queries;
  return compare(gpu, reference, rows * descriptor.num_q_heads * (descriptor.head_dim_v + 1));
}

// The worse of both.
check::CheckResult worse(check::CheckResult one, const check::CheckResult& other) {
  if (!one.passed) {
    return one;
  }
  const check::Comparison& errors = other.comparison;
  check::CheckResult result = other;
  result.comparison.worst_excess = std::max(one.comparison.worst_excess, errors.worst_excess);
  result.comparison.worst_lse_excess =
      std::max(one.comparison.worst_lse_excess, errors.worst_lse_excess);
  return result;
}

}  // namespace

// Values follow from request, token, head and column, so that both problems hold the same ones.
ContractCase suffix_case(const std::string& name, int num_q_heads, int num_kv_heads, int head_dim,
                         int tokens, int prefix) {
  const check::PrefillCase whole =
      prompt(check::ragged_descriptor(num_q_heads, num_kv_heads, head_dim), tokens);
  const check::PrefillCase cached =
      prompt(check::paged_descriptor(num_q_heads, num_kv_heads, head_dim), tokens);
  return {.name = name,
          .proof = Proof::reference,
          .kernels = {whole.descriptor, cached.descriptor},
          .on_gpu = [whole, cached, prefix](ContractGpu& gpu) {
            return worse(run_rows(gpu, whole, 0), run_rows(gpu, cached, prefix));
          }};
}

}  // namespace attnjit::contract
