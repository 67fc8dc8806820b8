#include "decode_facade_case.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "attnjit/flash_mla.hpp"
#include "contract_gpu.hpp"
#include "default_scale.hpp"
#include "host_tensor.hpp"
#include "per_request_blocks.hpp"

namespace attnjit::contract {
namespace {

MlaMetadataOptions options_of(const AttentionDescriptor& descriptor) {
  MlaMetadataOptions options;
  options.dtype = descriptor.dtype_q;
  options.head_dim_v = descriptor.head_dim_v;
  options.value_source = descriptor.value_source;
  options.mask = descriptor.mask;
  options.dtype_mask = descriptor.dtype_mask;
  options.batch_invariant = descriptor.batch_invariant;
  return options;
}

FlashMlaCall as_flash_mla(const check::DecodeProblem& problem, const TensorView& block_table) {
  const check::DecodeCase& decode_case = problem.decode_case();
  const AttentionDescriptor& descriptor = decode_case.descriptor;
  const DecodeCall& call = problem.call();
  const std::int64_t batch = decode_case.batch();
  FlashMlaCall facade;
  facade.q = contiguous_view(
      call.q.data, descriptor.dtype_q,
      {batch, descriptor.num_q_heads, decode_case.seqlen_q, descriptor.head_dim_qk});
  facade.out =
      contiguous_view(call.out.data, descriptor.dtype_out,
                      {batch, descriptor.num_q_heads, decode_case.seqlen_q, descriptor.head_dim_v});
  facade.k_cache = heads_first(call.k_cache);
  if (descriptor.value_source == ValueSource::separate) {
    facade.v_cache = heads_first(call.v_cache);
  }
  facade.block_table = block_table;
  facade.seq_lens = call.seq_lens;
  facade.mask = call.mask;
  facade.lse = call.lse;
  facade.softmax_scale = facade_scale(call.softmax_scale, descriptor.head_dim_qk);
  return facade;
}

check::CheckResult run_flash_mla(ContractGpu& gpu, const check::DecodeCase& decode_case) {
  check::DecodeProblem problem(gpu.kernels, decode_case, gpu.stream, decode_case.seed);
  CallMemory memory(gpu.stream);
  const FlashMlaCall call = as_flash_mla(
      problem,
      per_request_table(problem.call().block_table, problem.call().k_cache, memory, gpu.stream));
  const auto shape_of_call = [](const TensorView& view) {
    return std::vector<std::int64_t>(view.shape.begin(), view.shape.begin() + view.rank);
  };
  const MlaMetadata metadata =
      get_mla_metadata(shape_of_call(call.q), shape_of_call(call.k_cache), call.block_table,
                       decode_case.seq_lens, options_of(decode_case.descriptor));
  const DecodePlan plan = make_mla_plan(gpu.runtime, metadata, gpu.device(), gpu.stream.handle());
  const DeviceBuffer workspace(gpu.device(), static_cast<std::size_t>(plan.workspace_bytes()));
  problem.poison_outputs(gpu.stream);
  flash_mla_with_kvcache(call, metadata, plan, workspace.data(), plan.workspace_bytes(),
                         gpu.stream.handle());
  // [B, Hq, S, D] where the problem's own call is [B, S, Hq, D].
  check::ReferenceCall reference = problem.reference_call();
  reference.call.q = permuted_view(call.q, {0, 2, 1, 3});
  reference.call.out = permuted_view(call.out, {0, 2, 1, 3});
  check::CheckResult result = compare(gpu, reference, problem.num_values());
  gpu.stream.synchronize();  // plan and workspace go away
  return result;
}

}  // namespace

check::DecodeCase flash_mla_problem(int num_q_heads, int num_kv_heads, int head_dim, int seqlen_q,
                                    std::vector<int> seq_lens) {
  check::DecodeCase decode_case;
  AttentionDescriptor& descriptor = decode_case.descriptor;
  descriptor.num_q_heads = num_q_heads;
  descriptor.num_kv_heads = num_kv_heads;
  descriptor.head_dim_qk = descriptor.head_dim_v = head_dim;
  descriptor.max_seqlen_q = seqlen_q;
  descriptor.kv_layout_tag = KvLayoutTag::hnd;
  decode_case.seqlen_q = seqlen_q;
  decode_case.seq_lens = std::move(seq_lens);
  decode_case.arrangement = check::CacheArrangement::per_request;
  return decode_case;
}

ContractCase flash_mla_case(const std::string& name, const check::DecodeCase& decode_case) {
  return {.name = name,
          .proof = Proof::reference,
          .kernels = {decode_case.descriptor},
          .on_gpu = [decode_case](ContractGpu& gpu) { return run_flash_mla(gpu, decode_case); }};
}

}  // namespace attnjit::contract
