#include "append_case.hpp"

#include <vector>

#include "attnjit/append_kv_cache.hpp"
#include "contract_gpu.hpp"
#include "new_tokens.hpp"

namespace attnjit::contract {
namespace {

std::vector<int> offsets_of(const std::vector<int>& counts) {
  std::vector<int> offsets = {0};
  for (const int count : counts) {
    offsets.push_back(offsets.back() + count);
  }
  return offsets;
}

check::CheckResult run_append(ContractGpu& gpu, const check::PrefillCase& prefill_case,
                              AppendForm form) {
  const check::PrefillProblem problem(gpu.kernels, prefill_case, gpu.stream, prefill_case.seed);
  const bool is_latent = prefill_case.descriptor.value_source == ValueSource::prefix_of_k;
  const std::vector<int> table = download_ids(problem.call().block_table, gpu.stream);
  const NewTokens k = take_new_tokens(problem, problem.call().k, table, gpu.stream);
  CallMemory memory(gpu.stream);
  AppendKvCacheCall call;
  call.k_cache = memory.upload(k.cache);
  call.k_new = memory.upload(k.tokens);
  if (!is_latent) {
    const NewTokens v = take_new_tokens(problem, problem.call().v, table, gpu.stream);
    call.v_cache = memory.upload(v.cache);
    call.v_new = memory.upload(v.tokens);
  }
  if (form == AppendForm::slots) {
    call.slot_mapping = memory.upload(std::vector<int>(k.slots.begin(), k.slots.end()),
                                      {static_cast<std::int64_t>(k.slots.size())});
  } else {
    call.new_offsets = memory.upload(offsets_of(prefill_case.q_lens), {prefill_case.batch() + 1});
    call.block_table = problem.call().block_table;
    call.seq_lens = problem.call().seq_lens;
  }
  append_kv_cache(*gpu.runtime.prepare_append(append_kv_cache_descriptor(prefill_case.descriptor),
                                              gpu.device()),
                  call, gpu.stream.handle());
  const auto is_restored = [&](const TensorView& cache, const TensorView& whole) {
    return download_bytes(cache, gpu.stream) == download_bytes(whole, gpu.stream);
  };
  const bool is_whole = is_restored(call.k_cache, problem.call().k) &&
                        (is_latent || is_restored(call.v_cache, problem.call().v));
  return result_of(is_whole ? "" : "the cache differs from the one with these tokens");
}

}  // namespace

ContractCase append_case(const std::string& name, const check::PrefillCase& prefill_case,
                         AppendForm form) {
  return {.name = name,
          .proof = Proof::equal_bits,
          .kernels = {append_kv_cache_descriptor(prefill_case.descriptor)},
          .on_gpu = [prefill_case, form](ContractGpu& gpu) {
            return run_append(gpu, prefill_case, form);
          }};
}

}  // namespace attnjit::contract
