#include "c_abi_calls.hpp"

#include <array>

namespace attnjit::test {
namespace {

constexpr std::int64_t workspace_bytes = std::int64_t{1} << 40;

template <typename Call>
Call empty_call() {
  Call call = {};
  call.struct_size = sizeof call;
  return call;
}

attnjit_status run_decode(std::uint64_t plan, const attnjit_decode_call* call) {
  return attnjit_decode(plan, call, device_address(100), workspace_bytes, nullptr);
}

attnjit_status run_prefill(std::uint64_t kernel, const attnjit_prefill_call* call) {
  return attnjit_prefill(kernel, call, nullptr, nullptr, 0, nullptr);
}

attnjit_status run_sparse_mla(std::uint64_t kernel, const attnjit_sparse_mla_call* call) {
  return attnjit_sparse_mla(kernel, call, nullptr);
}

attnjit_status run_append(std::uint64_t kernel, const attnjit_append_kv_cache_call* call) {
  return attnjit_append_kv_cache(kernel, call, nullptr);
}

attnjit_status run_merge(std::uint64_t kernel, const attnjit_merge_states_call* call) {
  return attnjit_merge_states(kernel, call, nullptr);
}

#define ATTNJIT_FIELD(name) \
  { #name, &Call::name }

std::vector<TensorField<attnjit_decode_call>> decode_tensors() {
  using Call = attnjit_decode_call;
  return {ATTNJIT_FIELD(q),           ATTNJIT_FIELD(k_cache),  ATTNJIT_FIELD(v_cache),
          ATTNJIT_FIELD(block_table), ATTNJIT_FIELD(seq_lens), ATTNJIT_FIELD(mask),
          ATTNJIT_FIELD(sinks),       ATTNJIT_FIELD(out),      ATTNJIT_FIELD(lse)};
}

std::vector<TensorField<attnjit_prefill_call>> prefill_tensors() {
  using Call = attnjit_prefill_call;
  return {ATTNJIT_FIELD(q),
          ATTNJIT_FIELD(k),
          ATTNJIT_FIELD(v),
          ATTNJIT_FIELD(k_rope),
          ATTNJIT_FIELD(q_rope),
          ATTNJIT_FIELD(q_scales),
          ATTNJIT_FIELD(k_scales),
          ATTNJIT_FIELD(v_scales),
          ATTNJIT_FIELD(rope_scales),
          ATTNJIT_FIELD(out_scale),
          ATTNJIT_FIELD(q_offsets),
          ATTNJIT_FIELD(q_lens),
          ATTNJIT_FIELD(kv_offsets),
          ATTNJIT_FIELD(seq_lens),
          ATTNJIT_FIELD(block_table),
          ATTNJIT_FIELD(query_positions),
          ATTNJIT_FIELD(key_positions),
          ATTNJIT_FIELD(mask),
          ATTNJIT_FIELD(prefix_lens),
          ATTNJIT_FIELD(q_segments),
          ATTNJIT_FIELD(kv_segments),
          ATTNJIT_FIELD(alibi_slopes),
          ATTNJIT_FIELD(bias),
          ATTNJIT_FIELD(block_mask),
          ATTNJIT_FIELD(block_rows),
          ATTNJIT_FIELD(block_columns),
          ATTNJIT_FIELD(sinks),
          ATTNJIT_FIELD(out),
          ATTNJIT_FIELD(lse)};
}

std::vector<TensorField<attnjit_sparse_mla_call>> sparse_mla_tensors() {
  using Call = attnjit_sparse_mla_call;
  return {ATTNJIT_FIELD(q),
          ATTNJIT_FIELD(kv),
          ATTNJIT_FIELD(indices),
          ATTNJIT_FIELD(topk_length),
          ATTNJIT_FIELD(extra_kv),
          ATTNJIT_FIELD(extra_indices),
          ATTNJIT_FIELD(extra_topk_length),
          ATTNJIT_FIELD(sinks),
          ATTNJIT_FIELD(out),
          ATTNJIT_FIELD(lse),
          ATTNJIT_FIELD(max_logits)};
}

std::vector<TensorField<attnjit_append_kv_cache_call>> append_tensors() {
  using Call = attnjit_append_kv_cache_call;
  return {ATTNJIT_FIELD(k_new),    ATTNJIT_FIELD(v_new),        ATTNJIT_FIELD(k_cache),
          ATTNJIT_FIELD(v_cache),  ATTNJIT_FIELD(new_offsets),  ATTNJIT_FIELD(block_table),
          ATTNJIT_FIELD(seq_lens), ATTNJIT_FIELD(slot_mapping), ATTNJIT_FIELD(k_scale),
          ATTNJIT_FIELD(v_scale)};
}

std::vector<TensorField<attnjit_merge_states_call>> merge_tensors() {
  using Call = attnjit_merge_states_call;
  return {ATTNJIT_FIELD(out), ATTNJIT_FIELD(lse)};
}

#undef ATTNJIT_FIELD

RightCall<attnjit_decode_call> right_decode(CAbiSession& session, const char* operation,
                                            const char* descriptor,
                                            const attnjit_decode_call& call) {
  const attnjit_plan plan = session.make_plan(descriptor, decode_batch);
  require_ok(attnjit_plan_update(plan, static_cast<const int*>(device_address(101)), decode_batch,
                                 nullptr));
  session.take_launched_kernels();
  return {operation, descriptor, call, decode_tensors(), plan, run_decode};
}

RightCall<attnjit_prefill_call> right_prefill(CAbiSession& session, const char* operation,
                                              const char* descriptor,
                                              const attnjit_prefill_call& call) {
  return {operation, descriptor, call, prefill_tensors(), session.prepare(descriptor), run_prefill};
}

RightCall<attnjit_sparse_mla_call> right_sparse(CAbiSession& session, const char* operation,
                                                const char* descriptor,
                                                const attnjit_sparse_mla_call& call) {
  return {operation,     descriptor, call, sparse_mla_tensors(), session.prepare(descriptor),
          run_sparse_mla};
}

}  // namespace

const char* const mla_decode =
    R"({"operation": "decode", "head_dim_qk": 576, "head_dim_v": 512, "num_q_heads": 16,
        "num_kv_heads": 1, "value_source": "prefix_of_k"})";
const char* const gqa_decode =
    R"({"operation": "decode", "num_q_heads": 8, "num_kv_heads": 2, "has_sinks": true})";
const char* const ragged_prefill =
    R"({"operation": "prefill", "num_q_heads": 8, "num_kv_heads": 2, "max_seqlen_q": 0,
        "kv_layout": "ragged", "kv_layout_tag": "thd", "page_size": 0})";
const char* const paged_prefill =
    R"({"operation": "prefill_kvcache", "num_q_heads": 8, "num_kv_heads": 2, "max_seqlen_q": 0})";
const char* const rope_prefill =
    R"({"operation": "mla_prefill_rope", "num_q_heads": 4, "num_kv_heads": 4, "head_dim_qk": 192,
        "head_dim_v": 128, "max_seqlen_q": 0})";
const char* const sparse_decode =
    R"({"operation": "sparse_mla_decode", "head_dim_qk": 576, "head_dim_v": 512, "num_q_heads": 16,
        "num_kv_heads": 1, "value_source": "prefix_of_k", "mask": "none", "sparsity": "token",
        "max_seqlen_q": 0, "dtype_kv": "fp8_e4m3", "kv_encoding": "fp8_656"})";
const char* const sparse_prefill =
    R"({"operation": "sparse_mla_prefill", "head_dim_qk": 576, "head_dim_v": 512,
        "num_q_heads": 16, "num_kv_heads": 1, "value_source": "prefix_of_k", "mask": "none",
        "sparsity": "token", "max_seqlen_q": 0, "kv_layout": "ragged", "kv_layout_tag": "thd",
        "page_size": 0})";
const char* const append_to_cache =
    R"({"operation": "append_kv_cache", "num_q_heads": 2, "num_kv_heads": 2, "max_seqlen_q": 0})";
const char* const merge_of_parts =
    R"({"operation": "merge_states", "num_q_heads": 1, "num_kv_heads": 1, "max_seqlen_q": 0})";

void* device_address(int i) {
  constexpr std::uintptr_t piece_bytes = std::uintptr_t{1} << 40;
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(MockDriver::device_memory) +
                                 static_cast<std::uintptr_t>(i) * piece_bytes);
}

attnjit_tensor device_tensor(int i, attnjit_dtype dtype,
                             std::initializer_list<std::int64_t> shape) {
  attnjit_tensor tensor = {};
  tensor.data = device_address(i);
  tensor.dtype = dtype;
  for (const std::int64_t extent : shape) {
    tensor.shape[tensor.rank++] = extent;
  }
  std::int64_t stride = 1;
  for (int dimension = tensor.rank; dimension-- > 0;) {
    tensor.strides[dimension] = stride;
    stride *= tensor.shape[dimension];
  }
  return tensor;
}

RightCall<attnjit_decode_call> right_mla_decode(CAbiSession& session) {
  auto call = empty_call<attnjit_decode_call>();
  call.q = device_tensor(0, ATTNJIT_BF16, {decode_batch, 1, 16, 576});
  call.k_cache = device_tensor(1, ATTNJIT_BF16, {100, 64, 1, 576});
  call.block_table = device_tensor(2, ATTNJIT_INT32, {decode_batch, 50});
  call.seq_lens = device_tensor(3, ATTNJIT_INT32, {decode_batch});
  call.out = device_tensor(4, ATTNJIT_BF16, {decode_batch, 1, 16, 512});
  call.lse = device_tensor(5, ATTNJIT_FP32, {decode_batch, 16, 1});
  return right_decode(session, "attnjit_decode of a latent cache", mla_decode, call);
}

RightCall<attnjit_decode_call> right_gqa_decode(CAbiSession& session) {
  auto call = empty_call<attnjit_decode_call>();
  call.q = device_tensor(0, ATTNJIT_BF16, {decode_batch, 1, 8, 128});
  call.k_cache = device_tensor(1, ATTNJIT_BF16, {100, 64, 2, 128});
  call.v_cache = device_tensor(2, ATTNJIT_BF16, {100, 64, 2, 128});
  call.block_table = device_tensor(3, ATTNJIT_INT32, {decode_batch, 50});
  call.seq_lens = device_tensor(4, ATTNJIT_INT32, {decode_batch});
  call.sinks = device_tensor(5, ATTNJIT_FP32, {8});
  call.out = device_tensor(6, ATTNJIT_BF16, {decode_batch, 1, 8, 128});
  return right_decode(session, "attnjit_decode", gqa_decode, call);
}

RightCall<attnjit_prefill_call> right_ragged_prefill(CAbiSession& session) {
  auto call = empty_call<attnjit_prefill_call>();
  call.q = device_tensor(0, ATTNJIT_BF16, {20, 8, 128});
  call.k = device_tensor(1, ATTNJIT_BF16, {300, 2, 128});
  call.v = device_tensor(2, ATTNJIT_BF16, {300, 2, 128});
  call.q_offsets = device_tensor(3, ATTNJIT_INT32, {3});
  call.kv_offsets = device_tensor(4, ATTNJIT_INT32, {3});
  call.out = device_tensor(5, ATTNJIT_BF16, {20, 8, 128});
  call.lse = device_tensor(6, ATTNJIT_FP32, {8, 20});
  return right_prefill(session, "attnjit_prefill", ragged_prefill, call);
}

RightCall<attnjit_prefill_call> right_paged_prefill(CAbiSession& session) {
  auto call = empty_call<attnjit_prefill_call>();
  call.q = device_tensor(0, ATTNJIT_BF16, {2, 10, 8, 128});
  call.k = device_tensor(1, ATTNJIT_BF16, {100, 64, 2, 128});
  call.v = device_tensor(2, ATTNJIT_BF16, {100, 64, 2, 128});
  call.seq_lens = device_tensor(3, ATTNJIT_INT32, {2});
  call.block_table = device_tensor(4, ATTNJIT_INT32, {2, 50});
  call.out = device_tensor(5, ATTNJIT_BF16, {2, 10, 8, 128});
  return right_prefill(session, "attnjit_prefill over a paged cache", paged_prefill, call);
}

RightCall<attnjit_prefill_call> right_rope_prefill(CAbiSession& session) {
  auto call = empty_call<attnjit_prefill_call>();
  call.q = device_tensor(0, ATTNJIT_BF16, {20, 4, 192});
  call.k = device_tensor(1, ATTNJIT_BF16, {300, 4, 128});
  call.v = device_tensor(2, ATTNJIT_BF16, {300, 4, 128});
  call.k_rope = device_tensor(3, ATTNJIT_BF16, {100, 64, 1, 576});
  call.q_offsets = device_tensor(4, ATTNJIT_INT32, {3});
  call.kv_offsets = device_tensor(5, ATTNJIT_INT32, {3});
  call.block_table = device_tensor(6, ATTNJIT_INT32, {2, 50});
  call.query_positions = device_tensor(7, ATTNJIT_INT32, {2});
  call.out = device_tensor(8, ATTNJIT_BF16, {20, 4, 128});
  return right_prefill(session, "attnjit_prefill with the rope in a cache", rope_prefill, call);
}

RightCall<attnjit_sparse_mla_call> right_sparse_decode(CAbiSession& session) {
  auto call = empty_call<attnjit_sparse_mla_call>();
  call.q = device_tensor(0, ATTNJIT_BF16, {2, 1, 16, 576});
  call.kv = device_tensor(1, ATTNJIT_UINT8, {100, 64, 1, 656});
  call.indices = device_tensor(2, ATTNJIT_INT32, {2, 1, 256});
  call.out = device_tensor(3, ATTNJIT_BF16, {2, 1, 16, 512});
  return right_sparse(session, "attnjit_sparse_mla of a decode", sparse_decode, call);
}

RightCall<attnjit_sparse_mla_call> right_sparse_prefill(CAbiSession& session) {
  auto call = empty_call<attnjit_sparse_mla_call>();
  call.q = device_tensor(0, ATTNJIT_BF16, {20, 16, 576});
  call.kv = device_tensor(1, ATTNJIT_BF16, {300, 1, 576});
  call.indices = device_tensor(2, ATTNJIT_INT32, {20, 1, 256});
  call.out = device_tensor(3, ATTNJIT_BF16, {20, 16, 512});
  call.lse = device_tensor(4, ATTNJIT_FP32, {20, 16});
  call.max_logits = device_tensor(5, ATTNJIT_FP32, {20, 16});
  return right_sparse(session, "attnjit_sparse_mla of a prefill", sparse_prefill, call);
}

RightCall<attnjit_append_kv_cache_call> right_append(CAbiSession& session) {
  auto call = empty_call<attnjit_append_kv_cache_call>();
  call.k_new = device_tensor(0, ATTNJIT_BF16, {5, 2, 128});
  call.v_new = device_tensor(1, ATTNJIT_BF16, {5, 2, 128});
  call.k_cache = device_tensor(2, ATTNJIT_BF16, {100, 64, 2, 128});
  call.v_cache = device_tensor(3, ATTNJIT_BF16, {100, 64, 2, 128});
  call.new_offsets = device_tensor(4, ATTNJIT_INT32, {3});
  call.block_table = device_tensor(5, ATTNJIT_INT32, {2, 50});
  call.seq_lens = device_tensor(6, ATTNJIT_INT32, {2});
  return {"attnjit_append_kv_cache",        append_to_cache, call, append_tensors(),
          session.prepare(append_to_cache), run_append};
}

RightCall<attnjit_merge_states_call> right_merge(CAbiSession& session) {
  static const std::array<attnjit_partial_attention, 2> partials = {
      {{device_tensor(0, ATTNJIT_BF16, {20, 8, 128}), device_tensor(1, ATTNJIT_FP32, {20, 8})},
       {device_tensor(2, ATTNJIT_BF16, {20, 8, 128}), device_tensor(3, ATTNJIT_FP32, {20, 8})}}};
  auto call = empty_call<attnjit_merge_states_call>();
  call.partials = partials.data();
  call.num_partials = partials.size();
  call.out = device_tensor(4, ATTNJIT_BF16, {20, 8, 128});
  call.lse = device_tensor(5, ATTNJIT_FP32, {20, 8});
  return {"attnjit_merge_states",          merge_of_parts, call, merge_tensors(),
          session.prepare(merge_of_parts), run_merge};
}

}  // namespace attnjit::test
