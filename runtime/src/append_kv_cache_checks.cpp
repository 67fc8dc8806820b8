#include "append_kv_cache_checks.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "attention_tensors.hpp"
#include "cache_arguments.hpp"
#include "tensor_checks.hpp"

namespace attnjit {
namespace {

constexpr std::int64_t most_tokens = std::numeric_limits<int>::max();

bool is_given(const TensorView& view) {
  return view.data != nullptr;
}

bool require_new_rows(TensorChecks& checks, std::string_view name, const TensorView& rows,
                      const AttentionDescriptor& descriptor, int rank, std::int64_t batch,
                      std::int64_t tokens, int head_dim) {
  const std::int64_t heads = descriptor.num_kv_heads;
  return rank == 4
             ? check_rows(checks, name, rows, descriptor.dtype_q, {batch, tokens, heads, head_dim})
             : check_rows(checks, name, rows, descriptor.dtype_q, {tokens, heads, head_dim});
}

void check_written_cache(TensorChecks& checks, std::string_view name, const TensorView& cache,
                         const AttentionDescriptor& descriptor, std::int64_t batch,
                         std::int64_t pages, int head_dim) {
  if (check_cache(checks, name, cache, descriptor, batch, pages, head_dim)) {
    checks.require_distinct(name, cache);
  }
}

// One scale, or one per head, or one per request and head.
void check_scale(TensorChecks& checks, std::string_view name, const TensorView& scale,
                 const AttentionDescriptor& descriptor, std::int64_t batch) {
  if (descriptor.scales_kv == ScaleGrain::none) {
    require_absent(checks, name, scale, "the descriptor's scales_kv is none",
                   "leave it out, or prepare a descriptor with scales_kv");
    return;
  }
  const bool is_per_head = descriptor.scales_kv == ScaleGrain::per_head;
  const std::int64_t heads = descriptor.num_kv_heads;
  const bool fits = is_per_head && scale.rank == 2
                        ? checks.require_shape(name, scale, DataType::fp32, {batch, heads})
                        : checks.require_shape(name, scale, DataType::fp32,
                                               {is_per_head ? heads : std::int64_t{1}});
  if (fits) {
    checks.require_readable(name, scale);
  }
}

// Requests are the first dimension of k_new, or what new_offsets cuts it into.
std::int64_t count_requests(TensorChecks& checks, const AppendKvCacheCall& call) {
  if (call.k_new.rank == 4) {
    require_absent(checks, "new_offsets", call.new_offsets,
                   "k_new is [batch, seqlen_new, heads, columns]",
                   "leave it out, or pass k_new as [total_new, heads, columns]");
    return call.k_new.shape[0];
  }
  if (!is_given(call.new_offsets) && is_given(call.slot_mapping)) {
    return TensorChecks::any;
  }
  if (!check_numbers(checks, "new_offsets", call.new_offsets, DataType::int32,
                     {TensorChecks::any})) {
    return TensorChecks::any;
  }
  checks.require_some("new_offsets", call.new_offsets, 0);
  return std::max<std::int64_t>(call.new_offsets.shape[0] - 1, 0);
}

AppendSizes sizes_of(TensorChecks& checks, const AttentionDescriptor& descriptor,
                     const AppendKvCacheCall& call) {
  if (!require_new_rows(checks, "k_new", call.k_new, descriptor, call.k_new.rank, TensorChecks::any,
                        TensorChecks::any, descriptor.head_dim_qk)) {
    return {};
  }
  const bool is_dense = call.k_new.rank == 4;
  AppendSizes sizes;
  sizes.tokens_per_batch = call.k_new.shape.at(is_dense ? 1 : 0);
  const std::int64_t steps = is_dense ? call.k_new.shape[0] : 1;
  if (sizes.tokens_per_batch > most_tokens ||
      (sizes.tokens_per_batch > 0 && steps > most_tokens / sizes.tokens_per_batch)) {
    checks.add("k_new", describe(call.k_new), fmt::format("must be at most {} tokens", most_tokens),
               "write the tokens in several calls");
    return {};
  }
  sizes.num_tokens = steps * sizes.tokens_per_batch;
  sizes.batch = count_requests(checks, call);
  if (sizes.batch > most_tokens) {
    checks.add(is_dense ? "k_new" : "new_offsets",
               describe(is_dense ? call.k_new : call.new_offsets),
               fmt::format("must be of at most {} requests", most_tokens),
               "write the requests in several calls");
  }
  return sizes;
}

void check_table(TensorChecks& checks, const AppendKvCacheCall& call, std::int64_t batch) {
  if (!is_given(call.block_table)) {
    checks.add("block_table", "null", "must be given, or slot_mapping must", "pass one of the two");
  } else {
    check_block_table(checks, call.block_table, batch);
  }
  check_numbers(checks, "seq_lens", call.seq_lens, DataType::int32, {batch});
}

void check_slots(TensorChecks& checks, const AppendKvCacheCall& call, const AppendSizes& sizes) {
  require_absent(checks, "block_table", call.block_table, "slot_mapping says where tokens go",
                 "pass one of the two");
  require_absent(checks, "seq_lens", call.seq_lens, "slot_mapping says where tokens go",
                 "leave it out");
  const DataType dtype =
      call.slot_mapping.dtype == DataType::int32 ? DataType::int32 : DataType::int64;
  if (checks.require_shape("slot_mapping", call.slot_mapping, dtype, {sizes.num_tokens})) {
    checks.require_strides("slot_mapping", call.slot_mapping, 1,
                           static_cast<std::uintptr_t>(size_bytes(dtype)));
  }
  const bool is_per_request =
      call.k_cache.rank == 5 || call.k_scale.rank == 2 || call.v_scale.rank == 2;
  if (sizes.batch == TensorChecks::any && is_per_request) {
    checks.add("new_offsets", "null", "must be given: caches or scales are per request",
               "pass new_offsets, or a pool and scales that requests share");
  }
}

}  // namespace

AppendSizes check_append_call(const AttentionDescriptor& descriptor,
                              const AppendKvCacheCall& call) {
  TensorChecks checks;
  const AppendSizes sizes = sizes_of(checks, descriptor, call);
  checks.finish();
  if (is_given(call.slot_mapping)) {
    check_slots(checks, call, sizes);
  } else {
    check_table(checks, call, sizes.batch);
  }
  check_written_cache(checks, "k_cache", call.k_cache, descriptor, sizes.batch, TensorChecks::any,
                      descriptor.head_dim_qk);
  check_scale(checks, "k_scale", call.k_scale, descriptor, sizes.batch);
  if (descriptor.value_source == ValueSource::separate) {
    require_new_rows(checks, "v_new", call.v_new, descriptor, call.k_new.rank, sizes.batch,
                     sizes.tokens_per_batch, descriptor.head_dim_v);
    check_written_cache(checks, "v_cache", call.v_cache, descriptor, sizes.batch,
                        is_given(call.k_cache) ? pages_of(call.k_cache) : TensorChecks::any,
                        descriptor.head_dim_v);
    check_scale(checks, "v_scale", call.v_scale, descriptor, sizes.batch);
  } else {
    constexpr std::string_view reason = "v is a prefix of k in the descriptor";
    constexpr std::string_view fix = "leave it out, or prepare a descriptor of a separate v";
    require_absent(checks, "v_new", call.v_new, reason, fix);
    require_absent(checks, "v_cache", call.v_cache, reason, fix);
    require_absent(checks, "v_scale", call.v_scale, reason, fix);
  }
  checks.finish();
  return sizes;
}

}  // namespace attnjit
