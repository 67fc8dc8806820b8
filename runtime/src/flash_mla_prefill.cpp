#include "attnjit/flash_mla_prefill.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "flash_mla_checks.hpp"
#include "prefill_arguments.hpp"

namespace attnjit {
namespace {

constexpr int block_size = 64;
constexpr std::int64_t any = -1;

float scale_or_default(float softmax_scale, int head_dim) {
  return softmax_scale != 0.0F ? softmax_scale : 1.0F / std::sqrt(static_cast<float>(head_dim));
}

// [B, H, tokens, D], stride 1 in D, dimensions in this order. An extent may be `any`.
void check_heads(std::string_view name, const TensorView& view, DataType dtype,
                 const std::array<std::int64_t, 4>& shape) {
  require_shape(name, view, shape);
  require_dtype(name, view, dtype);
  if (view.shape[3] > 1 && view.strides[3] != 1) {
    fail_flash_mla(
        FlashMlaErrorCode::inner_contiguity,
        fmt::format("{} is {}: the columns of a head do not lie together", name, describe(view)),
        "make the tensor contiguous in D");
  }
  require_monotonic(name, view);
}

void check_attn_mask(const TensorView& mask, std::int64_t keys) {
  if (mask.data != nullptr && mask.rank == 4 && mask.shape[3] < keys) {
    fail_flash_mla(FlashMlaErrorCode::mask_length,
                   fmt::format("attn_mask covers {} keys of {}", mask.shape[3], keys),
                   "pad the mask, or recompute it with the right length");
  }
}

// [B, H, Nblk, 64, D] -> one hnd pool per request.
TensorView blocks_first(const TensorView& cache) {
  return cache.data != nullptr ? permuted_view(cache, {0, 2, 1, 3, 4}) : cache;
}

// [B, H, P, D] -> [B, P, H, D].
TensorView tokens_first(const TensorView& heads) {
  return heads.data != nullptr ? permuted_view(heads, {0, 2, 1, 3}) : heads;
}

void check_mha_call(const AttentionDescriptor& descriptor, const MhaKvCacheCall& call) {
  const int heads = descriptor.num_q_heads;
  const int head_dim = descriptor.head_dim_qk;
  check_heads("q", call.q, descriptor.dtype_q, {any, heads, any, head_dim});
  const std::int64_t batch = call.q.shape[0];
  const std::int64_t tokens = call.q.shape[2];
  const std::int64_t blocks = call.block_table.rank == 2 ? call.block_table.shape[1] : 0;
  const std::array<std::int64_t, 5> cache_shape = {batch, heads, blocks, block_size, head_dim};
  check_block_table(call.block_table, cache_shape);
  check_block_cache("k_cache", call.k_cache, descriptor.dtype_kv, cache_shape);
  check_block_cache("v_cache", call.v_cache, descriptor.dtype_kv, cache_shape);
  if (blocks * block_size < tokens) {
    fail_flash_mla(FlashMlaErrorCode::block_count,
                   fmt::format("block_table has {} blocks of {} tokens for {} query tokens", blocks,
                               block_size, tokens),
                   "update block_table or the cache allocation: ceil(P / 64) blocks at least");
  }
  if ((call.k_new.data == nullptr) != (call.v_new.data == nullptr)) {
    fail_flash_mla(FlashMlaErrorCode::shape_mismatch, "only one of k_new and v_new is given",
                   "pass both, or neither");
  }
  if (call.k_new.data != nullptr) {
    check_heads("k_new", call.k_new, descriptor.dtype_q, {batch, heads, tokens, head_dim});
    check_heads("v_new", call.v_new, descriptor.dtype_q, {batch, heads, tokens, head_dim});
  }
  check_attn_mask(call.attn_mask, tokens);
}

AttentionDescriptor mha_descriptor(const MhaKvCacheShape& shape) {
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::prefill_kvcache;
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = shape.dtype;
  descriptor.head_dim_qk = descriptor.head_dim_v = shape.head_dim;
  descriptor.num_q_heads = descriptor.num_kv_heads = shape.num_heads;
  descriptor.max_seqlen_q = 0;
  descriptor.kv_layout_tag = KvLayoutTag::hnd;
  descriptor.page_size = block_size;
  descriptor.mask = shape.mask;
  descriptor.dtype_mask = shape.dtype_mask;
  return descriptor;
}

}  // namespace

AttentionDescriptor flash_mla_prefill_descriptor(const FlashMlaPrefillShape& shape) {
  if (shape.num_kv_heads < 1 || shape.num_q_heads % shape.num_kv_heads != 0) {
    fail_flash_mla(FlashMlaErrorCode::head_ratio,
                   fmt::format("Hq = {} is not an integer multiple of Hk = {}", shape.num_q_heads,
                               shape.num_kv_heads),
                   "adjust the q reshape or the head splitting");
  }
  AttentionDescriptor descriptor;
  descriptor.operation = Operation::prefill;
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = shape.dtype;
  descriptor.head_dim_qk = shape.head_dim;
  descriptor.head_dim_v = shape.head_dim_v != 0 ? shape.head_dim_v : shape.head_dim;
  descriptor.num_q_heads = shape.num_q_heads;
  descriptor.num_kv_heads = shape.num_kv_heads;
  descriptor.max_seqlen_q = 0;
  descriptor.kv_layout = KvLayout::dense;
  descriptor.kv_layout_tag = KvLayoutTag::bhsd;
  descriptor.page_size = 0;
  descriptor.mask = shape.mask;
  descriptor.dtype_mask = shape.dtype_mask;
  descriptor.sparsity = shape.sparsity_block > 0 ? Sparsity::block : Sparsity::none;
  descriptor.sparsity_block = shape.sparsity_block;
  return descriptor;
}

void flash_mla_prefill(const PreparedPrefill& kernel, const FlashMlaPrefillCall& call,
                       CUstream_st* stream) {
  const AttentionDescriptor& descriptor = kernel.descriptor;
  check_heads("q", call.q, descriptor.dtype_q,
              {any, descriptor.num_q_heads, any, descriptor.head_dim_qk});
  check_heads("k", call.k, descriptor.dtype_kv,
              {call.q.shape[0], descriptor.num_kv_heads, any, descriptor.head_dim_qk});
  check_heads("v", call.v, descriptor.dtype_kv,
              {call.q.shape[0], descriptor.num_kv_heads, call.k.shape[2], descriptor.head_dim_v});
  check_attn_mask(call.attn_mask, call.k.shape[2]);
  PrefillCall prefill;
  prefill.q = tokens_first(call.q);
  prefill.k = call.k;
  prefill.v = call.v;
  prefill.mask = call.attn_mask;
  if (call.sparse_columns.data != nullptr) {
    prefill.block_rows = call.sparse_layout;
    prefill.block_columns = call.sparse_columns;
  } else {
    prefill.block_mask = call.sparse_layout;
  }
  prefill.out = tokens_first(call.out);
  prefill.lse = call.lse;
  prefill.softmax_scale = scale_or_default(call.softmax_scale, descriptor.head_dim_qk);
  run_prefill(kernel, prefill, stream);
}

PreparedMhaKvCache prepare_mha_kvcache(AttentionRuntime& runtime, const MhaKvCacheShape& shape,
                                       int device) {
  const AttentionDescriptor descriptor = mha_descriptor(shape);
  return {runtime.prepare_prefill(descriptor, device),
          runtime.prepare_append(append_kv_cache_descriptor(descriptor), device)};
}

void mha_fwd_kvcache(const PreparedMhaKvCache& kernels, const MhaKvCacheCall& call,
                     CUstream_st* stream) {
  const AttentionDescriptor& descriptor = kernels.prefill->descriptor;
  check_mha_call(descriptor, call);
  PrefillCall prefill;
  prefill.q = tokens_first(call.q);
  prefill.k = blocks_first(call.k_cache);
  prefill.v = blocks_first(call.v_cache);
  prefill.block_table = call.block_table;
  prefill.seq_lens = call.seq_lens;
  prefill.mask = call.attn_mask;
  prefill.out = tokens_first(call.out);
  prefill.lse = call.lse;
  prefill.softmax_scale = scale_or_default(call.softmax_scale, descriptor.head_dim_qk);
  check_prefill_call(descriptor, prefill);  // before anything is written
  if (call.k_new.data != nullptr) {
    AppendKvCacheCall append;
    append.k_new = tokens_first(call.k_new);
    append.v_new = tokens_first(call.v_new);
    append.k_cache = prefill.k;
    append.v_cache = prefill.v;
    append.block_table = call.block_table;
    append.seq_lens = call.seq_lens;
    append_kv_cache(*kernels.append, append, stream);
  }
  run_prefill(*kernels.prefill, prefill, stream);
}

}  // namespace attnjit
