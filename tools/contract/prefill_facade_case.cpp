#include "prefill_facade_case.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "contract_gpu.hpp"
#include "default_scale.hpp"
#include "host_tensor.hpp"
#include "new_tokens.hpp"
#include "per_request_blocks.hpp"
#include "prefill_problem.hpp"
#include "prefill_tensors.hpp"

namespace attnjit::contract {
namespace {

check::PrefillCase dense_queries(const AttentionDescriptor& descriptor, int queries,
                                 std::vector<int> kv_lens) {
  check::PrefillCase prefill_case;
  prefill_case.descriptor = descriptor;
  prefill_case.q_lens.assign(kv_lens.size(), queries);
  prefill_case.kv_lens = std::move(kv_lens);
  prefill_case.query_layout = check::QueryLayout::bhsd;
  return prefill_case;
}

// [B, P, H, D] -> [B, H, P, D].
TensorView heads_outside(const TensorView& view) {
  return permuted_view(view, {0, 2, 1, 3});
}

float scale_for(const check::PrefillProblem& problem) {
  return facade_scale(problem.call().softmax_scale, problem.prefill_case().descriptor.head_dim_qk);
}

// Row offsets and columns of a block mask, for FlashMlaPrefillCall.
struct CompressedRows {
  TensorView rows;
  TensorView columns;
};

CompressedRows compress(const check::PrefillCase& prefill_case, CallMemory& memory) {
  std::vector<int> rows;
  std::vector<int> columns;
  TensorView mask;
  for (const check::SmallTensor& tensor : check::make_small_tensors(prefill_case)) {
    if (tensor.place != &PrefillCall::block_mask) {
      continue;
    }
    mask = tensor.view;
    const auto key_blocks = static_cast<std::size_t>(mask.shape[3]);
    for (std::size_t i = 0; i < tensor.bytes.size(); ++i) {
      if (i % (key_blocks * static_cast<std::size_t>(mask.shape[2])) == 0) {
        rows.push_back(static_cast<int>(columns.size()));
      }
      if (tensor.bytes[i] != 0) {
        columns.push_back(static_cast<int>(i % key_blocks));
      }
      if (i % key_blocks + 1 == key_blocks) {
        rows.push_back(static_cast<int>(columns.size()));
      }
    }
  }
  return {memory.upload(rows, {mask.shape[0], mask.shape[1], mask.shape[2] + 1}),
          memory.upload(columns, {static_cast<std::int64_t>(columns.size())})};
}

check::CheckResult run_flash_mla_prefill(ContractGpu& gpu, const check::PrefillCase& prefill_case,
                                         BlockLayoutForm form) {
  check::PrefillProblem problem(gpu.kernels, prefill_case, gpu.stream, prefill_case.seed);
  CallMemory memory(gpu.stream);
  const PrefillCall& call = problem.call();
  FlashMlaPrefillCall facade;
  facade.q = heads_outside(call.q);
  facade.k = call.k;
  facade.v = call.v;
  if (form == BlockLayoutForm::compressed_rows) {
    const CompressedRows compressed = compress(prefill_case, memory);
    facade.sparse_layout = compressed.rows;
    facade.sparse_columns = compressed.columns;
  } else {
    facade.sparse_layout = call.block_mask;
  }
  facade.attn_mask = call.mask;
  facade.out = heads_outside(call.out);
  facade.lse = call.lse;
  facade.softmax_scale = scale_for(problem);
  problem.poison_outputs(gpu.stream);
  flash_mla_prefill(*gpu.runtime.prepare_prefill(prefill_case.descriptor, gpu.device()), facade,
                    gpu.stream.handle());
  return compare(gpu, problem.reference_call(), check::count_values(prefill_case));
}

MhaKvCacheCall as_mha(const check::PrefillProblem& problem, CallMemory& memory,
                      const DeviceStream& stream) {
  const PrefillCall& call = problem.call();
  MhaKvCacheCall facade;
  facade.q = heads_outside(call.q);
  facade.k_cache = heads_first(call.k);
  facade.v_cache = heads_first(call.v);
  facade.block_table = per_request_table(call.block_table, call.k, memory, stream);
  facade.seq_lens = call.seq_lens;
  facade.attn_mask = call.mask;
  facade.out = heads_outside(call.out);
  facade.lse = call.lse;
  facade.softmax_scale = scale_for(problem);
  return facade;
}

PreparedMhaKvCache kernels_of(ContractGpu& gpu, const AttentionDescriptor& descriptor) {
  return prepare_mha_kvcache(gpu.runtime,
                             {.num_heads = descriptor.num_q_heads,
                              .head_dim = descriptor.head_dim_qk,
                              .mask = descriptor.mask,
                              .dtype_mask = descriptor.dtype_mask,
                              .dtype = descriptor.dtype_q},
                             gpu.device());
}

check::CheckResult run_mha(ContractGpu& gpu, const check::PrefillCase& prefill_case) {
  check::PrefillProblem problem(gpu.kernels, prefill_case, gpu.stream, prefill_case.seed);
  CallMemory memory(gpu.stream);
  problem.poison_outputs(gpu.stream);
  mha_fwd_kvcache(kernels_of(gpu, prefill_case.descriptor), as_mha(problem, memory, gpu.stream),
                  gpu.stream.handle());
  return compare(gpu, problem.reference_call(), check::count_values(prefill_case));
}

check::CheckResult run_mha_write(ContractGpu& gpu, const check::PrefillCase& prefill_case) {
  check::PrefillProblem problem(gpu.kernels, prefill_case, gpu.stream, prefill_case.seed);
  CallMemory memory(gpu.stream);
  MhaKvCacheCall call = as_mha(problem, memory, gpu.stream);
  const std::vector<int> table = download_ids(problem.call().block_table, gpu.stream);
  const NewTokens k = take_new_tokens(problem, problem.call().k, table, gpu.stream);
  const NewTokens v = take_new_tokens(problem, problem.call().v, table, gpu.stream);
  const TensorView k_cache = memory.upload(k.cache);
  const TensorView v_cache = memory.upload(v.cache);
  call.k_cache = heads_first(k_cache);
  call.v_cache = heads_first(v_cache);
  call.k_new = memory.upload(by_head(k.tokens, prefill_case.batch()));
  call.v_new = memory.upload(by_head(v.tokens, prefill_case.batch()));
  problem.poison_outputs(gpu.stream);
  mha_fwd_kvcache(kernels_of(gpu, prefill_case.descriptor), call, gpu.stream.handle());
  check::CheckResult result =
      compare(gpu, problem.reference_call(), check::count_values(prefill_case));
  if (result.passed &&
      (download_bytes(k_cache, gpu.stream) != download_bytes(problem.call().k, gpu.stream) ||
       download_bytes(v_cache, gpu.stream) != download_bytes(problem.call().v, gpu.stream))) {
    return result_of("the caches do not hold the new tokens where the block table says");
  }
  return result;
}

}  // namespace

check::PrefillCase flash_mla_prefill_problem(const FlashMlaPrefillShape& shape, int batch,
                                             int queries, int keys) {
  return dense_queries(
      flash_mla_prefill_descriptor(shape), queries,
      std::vector<int>(static_cast<std::size_t>(batch), keys > 0 ? keys : queries));
}

ContractCase flash_mla_prefill_case(const std::string& name, const check::PrefillCase& prefill_case,
                                    BlockLayoutForm form) {
  return {.name = name,
          .proof = Proof::reference,
          .kernels = {prefill_case.descriptor},
          .on_gpu = [prefill_case, form](ContractGpu& gpu) {
            return run_flash_mla_prefill(gpu, prefill_case, form);
          }};
}

check::PrefillCase mha_problem(const MhaKvCacheShape& shape, int queries,
                               const std::vector<int>& kv_lens) {
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::prefill_kvcache;
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = shape.dtype;
  descriptor.head_dim_qk = descriptor.head_dim_v = shape.head_dim;
  descriptor.num_q_heads = descriptor.num_kv_heads = shape.num_heads;
  descriptor.max_seqlen_q = 0;
  descriptor.kv_layout_tag = KvLayoutTag::hnd;
  descriptor.mask = shape.mask;
  descriptor.dtype_mask = shape.dtype_mask;
  check::PrefillCase prefill_case = dense_queries(descriptor, queries, kv_lens);
  prefill_case.arrangement = check::CacheArrangement::per_request;
  return prefill_case;
}

ContractCase mha_case(const std::string& name, const check::PrefillCase& prefill_case) {
  return {.name = name,
          .proof = Proof::reference,
          .kernels = {prefill_case.descriptor, append_kv_cache_descriptor(prefill_case.descriptor)},
          .on_gpu = [prefill_case](ContractGpu& gpu) { return run_mha(gpu, prefill_case); }};
}

ContractCase mha_write_case(const std::string& name, const check::PrefillCase& prefill_case) {
  return {.name = name,
          .proof = Proof::reference,
          .kernels = {prefill_case.descriptor, append_kv_cache_descriptor(prefill_case.descriptor)},
          .on_gpu = [prefill_case](ContractGpu& gpu) { return run_mha_write(gpu, prefill_case); }};
}

}  // namespace attnjit::contract
