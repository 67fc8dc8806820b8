#include "merge_case.hpp"

#include <numeric>
#include <utility>

#include "host_tensor.hpp"
#include "prefill_problem.hpp"

namespace attnjit::contract {
namespace {

// Rows [first, first + count) of [rows, …].
TensorView rows_of(TensorView view, std::int64_t first, std::int64_t count) {
  view.data =
      static_cast<unsigned char*>(view.data) + first * view.strides[0] * size_bytes(view.dtype);
  view.shape[0] = count;
  return view;
}

// The call over part `chunk` of `chunks` of every request's keys, where its positions stay.
PrefillCall call_of_chunk(const check::PrefillProblem& problem, int chunk, int chunks,
                          CallMemory& memory) {
  const check::PrefillCase& prefill_case = problem.prefill_case();
  const std::int64_t batch = prefill_case.batch();
  std::vector<int> first_rows;
  std::vector<int> lengths;
  std::vector<int> first_keys;
  std::vector<int> first_queries;
  int row = prefill_case.rows_before;
  for (int b = 0; b < prefill_case.batch(); ++b) {
    const int keys = prefill_case.kv_len(b);
    first_keys.push_back(keys * chunk / chunks);
    first_rows.push_back(row + first_keys.back());
    lengths.push_back(keys * (chunk + 1) / chunks - first_keys.back());
    first_queries.push_back(keys - prefill_case.q_len(b));
    row += keys + prefill_case.unowned_rows;
  }
  first_rows.push_back(row);
  PrefillCall call = problem.call();
  call.kv_offsets = memory.upload(first_rows, {batch + 1});
  call.seq_lens = memory.upload(lengths, {batch});
  call.key_positions = memory.upload(first_keys, {batch});
  call.query_positions = memory.upload(first_queries, {batch});
  call.out = memory.poisoned(call.out);
  call.lse = memory.poisoned(call.lse);
  return call;
}

check::CheckResult run_merge(ContractGpu& gpu, const check::PrefillCase& prefill_case, int chunks) {
  check::PrefillProblem problem(gpu.kernels, prefill_case, gpu.stream, prefill_case.seed);
  const auto kernel = gpu.runtime.prepare_prefill(prefill_case.descriptor, gpu.device());
  CallMemory memory(gpu.stream);
  std::vector<PartialAttention> parts;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const PrefillCall call = call_of_chunk(problem, chunk, chunks, memory);
    run_prefill(*kernel, call, gpu.stream.handle());
    parts.push_back({call.out, permuted_view(call.lse, {1, 0})});
  }
  problem.poison_outputs(gpu.stream);
  merge_owned_rows(gpu, prefill_case, std::move(parts), problem.call());
  return compare(gpu, problem.reference_call(), check::count_values(prefill_case));
}

}  // namespace

void merge_owned_rows(ContractGpu& gpu, const check::PrefillCase& prefill_case,
                      std::vector<PartialAttention> parts, const PrefillCall& whole) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  const std::int64_t first = prefill_case.rows_before;
  const std::int64_t count =
      std::reduce(prefill_case.q_lens.begin(), prefill_case.q_lens.end(), std::int64_t{0});
  for (PartialAttention& part : parts) {
    part = {rows_of(part.out, first, count), rows_of(part.lse, first, count)};
  }
  merge_attention_states(
      *gpu.runtime.prepare_merge(
          merge_states_descriptor(descriptor.head_dim_v, descriptor.dtype_out), gpu.device()),
      {parts, rows_of(whole.out, first, count),
       rows_of(permuted_view(whole.lse, {1, 0}), first, count)},
      gpu.stream.handle());
}

ContractCase merge_case(const std::string& name, const check::PrefillCase& prefill_case,
                        int chunks) {
  return {.name = name,
          .proof = Proof::reference,
          .kernels = {prefill_case.descriptor,
                      merge_states_descriptor(prefill_case.descriptor.head_dim_v,
                                              prefill_case.descriptor.dtype_out)},
          .on_gpu = [prefill_case, chunks](ContractGpu& gpu) {
            return run_merge(gpu, prefill_case, chunks);
          }};
}

}  // namespace attnjit::contract
