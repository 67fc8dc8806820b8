#include "sparse_mla_arguments.hpp"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "attention_tensors.hpp"
#include "tensor_checks.hpp"

namespace attnjit {
namespace {

using namespace kernel_interface;

constexpr std::int64_t any = TensorChecks::any;

bool is_given(const TensorView& view) {
  return view.data != nullptr;
}

bool is_decode(const AttentionDescriptor& descriptor) {
  return descriptor.operation == Operation::sparse_mla_decode;
}

bool is_hnd(const AttentionDescriptor& descriptor) {
  return descriptor.kv_layout_tag == KvLayoutTag::hnd;
}

// Bytes of an encoded token: the width of its pool's view.
std::int64_t encoded_bytes(KvEncoding encoding) {
  return encoding == KvEncoding::fp8_656 ? 656 : 584;
}

// What of an encoded token lies in its row of a page.
std::int64_t encoded_row_bytes(KvEncoding encoding) {
  return encoding == KvEncoding::fp8_656 ? 656 : 576;
}

std::int64_t tokens_per_page(const AttentionDescriptor& descriptor, const TensorView& pool) {
  return pool.shape[is_hnd(descriptor) ? 2 : 1];
}

std::int64_t token_stride(const AttentionDescriptor& descriptor, const TensorView& pool) {
  return pool.strides[is_hnd(descriptor) ? 2 : 1];
}

// Bytes, whichever of the two types of one byte the view has.
void check_encoded_pool(TensorChecks& checks, std::string_view name, const TensorView& pool,
                        const AttentionDescriptor& descriptor, std::int64_t page_size) {
  const bool is_fp8_656 = descriptor.kv_encoding == KvEncoding::fp8_656;
  const std::int64_t bytes = encoded_bytes(descriptor.kv_encoding);
  const DataType dtype = pool.dtype == DataType::uint8 ? DataType::uint8 : descriptor.dtype_kv;
  const std::int64_t second = is_hnd(descriptor) ? 1 : page_size;
  const std::int64_t third = is_hnd(descriptor) ? page_size : 1;
  if (!checks.require_shape(name, pool, dtype, {any, second, third, bytes})) {
    return;
  }
  checks.require_strides(name, pool, is_fp8_656 ? 16 : 8, is_fp8_656 ? 16 : 8);
  const std::int64_t stride = token_stride(descriptor, pool);
  if (!is_fp8_656 && tokens_per_page(descriptor, pool) > 1 && stride != bytes) {
    checks.add(name, describe(pool),
               fmt::format("must have tokens at a stride of {} bytes: a page is one piece", bytes),
               "view each page as contiguous; pages may lie apart");
  }
}

void check_pool(TensorChecks& checks, std::string_view name, const TensorView& pool,
                const AttentionDescriptor& descriptor, std::int64_t page_size) {
  if (descriptor.kv_encoding != KvEncoding::plain) {
    check_encoded_pool(checks, name, pool, descriptor, page_size);
  } else if (is_hnd(descriptor)) {
    check_rows(checks, name, pool, descriptor.dtype_kv,
               {any, 1, page_size, descriptor.head_dim_qk});
  } else {
    check_rows(checks, name, pool, descriptor.dtype_kv,
               {any, page_size, 1, descriptor.head_dim_qk});
  }
}

void check_extra_pool(TensorChecks& checks, const AttentionDescriptor& descriptor,
                      const SparseMlaCall& call) {
  const bool has_pool = is_decode(descriptor) && is_given(call.extra_kv);
  if (!has_pool) {
    const std::string_view because =
        is_decode(descriptor) ? "extra_kv is not" : "only sparse_mla_decode has a second pool";
    constexpr std::string_view fix = "leave it out, or pass the pool to a decode";
    require_absent(checks, "extra_kv", call.extra_kv, because, fix);
    require_absent(checks, "extra_indices", call.extra_indices, because, fix);
    require_absent(checks, "extra_topk_length", call.extra_topk_length, because, fix);
    return;
  }
  const std::int64_t batch = call.q.shape[0];
  check_pool(checks, "extra_kv", call.extra_kv, descriptor, any);
  if (call.extra_kv.rank == 4 && tokens_per_page(descriptor, call.extra_kv) < 1) {
    checks.add("extra_kv", describe(call.extra_kv), "must have pages of at least one token",
               "leave out a pool without tokens");
  }
  check_numbers(checks, "extra_indices", call.extra_indices, DataType::int32,
                {batch, call.q.shape[1], any});
  if (is_given(call.extra_topk_length)) {
    check_numbers(checks, "extra_topk_length", call.extra_topk_length, DataType::int32, {batch});
  }
}

void check_row_numbers(TensorChecks& checks, std::string_view name, const TensorView& numbers,
                       const AttentionDescriptor& descriptor, const TensorView& q) {
  if (!is_given(numbers)) {
    return;
  }
  const std::int64_t heads = descriptor.num_q_heads;
  const bool fits =
      is_decode(descriptor)
          ? checks.require_shape(name, numbers, DataType::fp32, {q.shape[0], heads, q.shape[1]})
          : checks.require_shape(name, numbers, DataType::fp32, {q.shape[0], heads});
  if (fits) {
    checks.require_distinct(name, numbers);
  }
}

// All other shapes follow from that of q.
void check_queries(TensorChecks& checks, const AttentionDescriptor& descriptor,
                   const TensorView& q) {
  const std::int64_t heads = descriptor.num_q_heads;
  if (is_decode(descriptor)) {
    check_rows(checks, "q", q, descriptor.dtype_q, {any, any, heads, descriptor.head_dim_qk});
  } else {
    check_rows(checks, "q", q, descriptor.dtype_q, {any, heads, descriptor.head_dim_qk});
  }
  checks.finish();
}

void check_tensors(TensorChecks& checks, const AttentionDescriptor& descriptor,
                   const SparseMlaCall& call) {
  const std::int64_t heads = descriptor.num_q_heads;
  const auto& q = call.q.shape;
  if (is_decode(descriptor)) {
    check_output(checks, "out", call.out, descriptor.dtype_out,
                 {q[0], q[1], heads, descriptor.head_dim_v});
    check_pool(checks, "kv", call.kv, descriptor, descriptor.page_size);
    check_numbers(checks, "indices", call.indices, DataType::int32, {q[0], q[1], any});
  } else {
    check_output(checks, "out", call.out, descriptor.dtype_out,
                 {q[0], heads, descriptor.head_dim_v});
    check_rows(checks, "kv", call.kv, descriptor.dtype_kv, {any, 1, descriptor.head_dim_qk});
    check_numbers(checks, "indices", call.indices, DataType::int32, {q[0], 1, any});
  }
  if (is_given(call.topk_length)) {
    check_numbers(checks, "topk_length", call.topk_length, DataType::int32, {q[0]});
  }
}

// The kernel counts entries in 32 bits, and a few tiles past their end.
void check_counts(TensorChecks& checks, const SparseMlaCall& call) {
  constexpr std::int64_t most_entries = std::int64_t{1} << 30;
  const std::int64_t extra = is_given(call.extra_indices) ? call.extra_indices.shape[2] : 0;
  if (call.indices.shape[2] > most_entries || extra > most_entries - call.indices.shape[2]) {
    checks.add("indices", describe(call.indices),
               fmt::format("must be at most {} for a query, those of the second pool included",
                           most_entries),
               "merge calls over parts of the indices by their LSE");
  }
}

TokenPool make_pool(const AttentionDescriptor& descriptor, const TensorView& pool) {
  TokenPool made = {};
  made.data = pool.data;
  const int element_bytes = size_bytes(pool.dtype);
  made.page_stride = pool.strides[0] * element_bytes;
  if (!is_decode(descriptor)) {
    made.num_tokens = pool.shape[0];
    made.page_size = 1;
    return made;
  }
  const std::int64_t page_size = tokens_per_page(descriptor, pool);
  made.row_stride = descriptor.kv_encoding == KvEncoding::fp8_584
                        ? encoded_row_bytes(descriptor.kv_encoding)
                        : token_stride(descriptor, pool) * element_bytes;
  made.num_tokens = pool.shape[0] * page_size;
  made.page_size = bounded_extent(page_size);
  return made;
}

TokenIndices make_indices(const AttentionDescriptor& descriptor, const TensorView& indices,
                          const TensorView& lengths) {
  return {static_cast<const int*>(indices.data), static_cast<const int*>(lengths.data),
          indices.strides[0], is_decode(descriptor) ? indices.strides[1] : 0,
          bounded_extent(indices.shape[2])};
}

bool is_aligned_16(const TokenPool& pool) {
  return reinterpret_cast<std::uintptr_t>(pool.data) % 16 == 0 && pool.page_stride % 16 == 0;
}

// Of [batch, seqlen_q, num_q_heads, …], or [s_q, num_q_heads, …].
QueryStrides row_strides(const TensorView& view) {
  return view.rank == 4 ? QueryStrides{view.strides[0], view.strides[1], view.strides[2]}
                        : QueryStrides{view.strides[0], 0, view.strides[1]};
}

// Of [batch, num_q_heads, seqlen_q], or [s_q, num_q_heads].
QueryStrides number_strides(const TensorView& view) {
  return view.rank == 3 ? QueryStrides{view.strides[0], view.strides[2], view.strides[1]}
                        : QueryStrides{view.strides[0], 0, view.strides[1]};
}

}  // namespace

void check_sparse_mla_call(const AttentionDescriptor& descriptor, const SparseMlaCall& call) {
  TensorChecks checks;
  check_queries(checks, descriptor, call.q);
  check_tensors(checks, descriptor, call);
  check_extra_pool(checks, descriptor, call);
  check_row_numbers(checks, "lse", call.lse, descriptor, call.q);
  check_row_numbers(checks, "max_logits", call.max_logits, descriptor, call.q);
  check_sinks(checks, descriptor, call.sinks);
  check_softmax_scale(checks, call.softmax_scale);
  check_counts(checks, call);
  checks.finish();
}

SparseMlaArguments make_sparse_mla_arguments(const AttentionDescriptor& descriptor,
                                             const SparseMlaCall& call) {
  SparseMlaArguments arguments = {};
  arguments.q = call.q.data;
  arguments.out = call.out.data;
  arguments.lse = static_cast<float*>(call.lse.data);
  arguments.max_logits = static_cast<float*>(call.max_logits.data);
  arguments.q_strides = row_strides(call.q);
  arguments.out_strides = row_strides(call.out);
  arguments.lse_strides = number_strides(call.lse);
  arguments.max_logits_strides = number_strides(call.max_logits);
  arguments.pools[0] = make_pool(descriptor, call.kv);
  arguments.indices[0] = make_indices(descriptor, call.indices, call.topk_length);
  arguments.is_aligned_16 = is_aligned_16(arguments.pools[0]) ? 1 : 0;
  if (is_given(call.extra_kv)) {
    arguments.pools[1] = make_pool(descriptor, call.extra_kv);
    arguments.indices[1] = make_indices(descriptor, call.extra_indices, call.extra_topk_length);
    arguments.is_aligned_16 &= is_aligned_16(arguments.pools[1]) ? 1 : 0;
  }
  arguments.sinks = static_cast<const float*>(call.sinks.data);
  arguments.softmax_scale = call.softmax_scale;
  arguments.seqlen_q = is_decode(descriptor) ? static_cast<int>(call.q.shape[1]) : 1;
  arguments.num_q_heads = descriptor.num_q_heads;
  return arguments;
}

}  // namespace attnjit
