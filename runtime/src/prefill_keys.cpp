#include "prefill_keys.hpp"

#include <string>

#include <fmt/format.h>

#include "attention_tensors.hpp"
#include "cache_arguments.hpp"

namespace attnjit {
namespace {

using namespace kernel_interface;

bool has_rope(const AttentionDescriptor& descriptor) {
  return descriptor.operation == Operation::mla_prefill_rope;
}

KvLayoutTag key_layout_tag(const AttentionDescriptor& descriptor) {
  return has_rope(descriptor) ? KvLayoutTag::thd : descriptor.kv_layout_tag;
}

int rope_columns(const AttentionDescriptor& descriptor) {
  return has_rope(descriptor) ? descriptor.head_dim_qk - descriptor.head_dim_v : 0;
}

std::size_t rope_token_dimension(const AttentionDescriptor& descriptor) {
  const KvLayoutTag tag = descriptor.kv_layout_tag;
  return tag == KvLayoutTag::hnd || tag == KvLayoutTag::bhsd ? 2 : 1;
}

bool reads_pages(const AttentionDescriptor& descriptor) {
  return descriptor.kv_layout == KvLayout::paged;
}

void check_contiguous(TensorChecks& checks, std::string_view name, const TensorView& view,
                      const AttentionDescriptor& descriptor, std::int64_t batch,
                      std::int64_t tokens, int head_dim) {
  const int heads = descriptor.num_kv_heads;
  switch (key_layout_tag(descriptor)) {
    case KvLayoutTag::bshd:
      check_rows(checks, name, view, descriptor.dtype_kv, {batch, tokens, heads, head_dim});
      break;
    case KvLayoutTag::bhsd:
      check_rows(checks, name, view, descriptor.dtype_kv, {batch, heads, tokens, head_dim});
      break;
    default:
      check_rows(checks, name, view, descriptor.dtype_kv, {tokens, heads, head_dim});
  }
}

// Where the tokens of a tensor of keys stand.
std::size_t token_dimension(KvLayoutTag tag) {
  return tag == KvLayoutTag::bhsd ? 2 : tag == KvLayoutTag::bshd ? 1 : 0;
}

void check_values(TensorChecks& checks, const AttentionDescriptor& descriptor,
                  const PrefillCall& call, std::int64_t batch) {
  if (descriptor.value_source == ValueSource::prefix_of_k) {
    require_absent(checks, "v", call.v, "v is a prefix of k in the descriptor",
                   "leave it out, or prepare a descriptor with value_source separate");
  } else if (key_layout(descriptor) == KvLayout::paged) {
    check_cache(checks, "v", call.v, descriptor, batch, TensorChecks::any, descriptor.head_dim_v);
  } else {
    check_contiguous(checks, "v", call.v, descriptor, batch, key_extent(descriptor, call),
                     descriptor.head_dim_v);
  }
}

// One head for all, of at least the columns that k lacks, which are its last.
void check_rope(TensorChecks& checks, const AttentionDescriptor& descriptor,
                const PrefillCall& call, std::int64_t batch) {
  const TensorView& rope = call.k_rope;
  if (!has_rope(descriptor)) {
    require_absent(checks, "k_rope", rope, "k has all columns",
                   "leave it out, or prepare a descriptor of operation mla_prefill_rope");
    return;
  }
  constexpr std::int64_t any = TensorChecks::any;
  const std::int64_t page = descriptor.page_size;
  bool fits = false;
  switch (descriptor.kv_layout_tag) {
    case KvLayoutTag::hnd:
      fits = check_rows(checks, "k_rope", rope, descriptor.dtype_rope, {any, 1, page, any});
      break;
    case KvLayoutTag::nhd:
      fits = check_rows(checks, "k_rope", rope, descriptor.dtype_rope, {any, page, 1, any});
      break;
    case KvLayoutTag::bhsd:
      fits = check_rows(checks, "k_rope", rope, descriptor.dtype_rope, {batch, 1, any, any});
      break;
    default:
      fits = check_rows(checks, "k_rope", rope, descriptor.dtype_rope, {batch, any, 1, any});
  }
  if (fits) {
    checks.require_some("k_rope", rope,
                        reads_pages(descriptor) ? 0 : rope_token_dimension(descriptor));
  }
  const int columns = rope_columns(descriptor);
  if (fits && (rope.shape[3] < columns || rope.shape[3] % elements_per_16_bytes != 0)) {
    checks.add("k_rope", describe(rope),
               fmt::format("must have at least {} columns, a multiple of 8", columns),
               "pass the whole rows of the cache, or its rope columns");
  }
  if (reads_pages(descriptor) && call.query_positions.data == nullptr) {
    checks.add("query_positions", "null", "must be given: k_rope is paged",
               "pass the number of tokens of each request that were cached before");
  }
}

}  // namespace

KvLayout key_layout(const AttentionDescriptor& descriptor) {
  return has_rope(descriptor) ? KvLayout::ragged : descriptor.kv_layout;
}

std::int64_t key_extent(const AttentionDescriptor& descriptor, const PrefillCall& call) {
  return call.k.shape.at(token_dimension(key_layout_tag(descriptor)));
}

void check_prefill_keys(TensorChecks& checks, const AttentionDescriptor& descriptor,
                        const PrefillCall& call, std::int64_t batch) {
  const KvLayout layout = key_layout(descriptor);
  const int columns = descriptor.head_dim_qk - rope_columns(descriptor);
  if (layout == KvLayout::paged) {
    check_cache(checks, "k", call.k, descriptor, batch, TensorChecks::any, columns);
  } else {
    check_contiguous(checks, "k", call.k, descriptor, batch, TensorChecks::any, columns);
  }
  check_values(checks, descriptor, call, batch);
  check_rope(checks, descriptor, call, batch);
  if (reads_pages(descriptor)) {
    check_block_table(checks, call.block_table, batch);
  } else {
    require_absent(checks, "block_table", call.block_table, "the keys are not paged",
                   "leave it out, or prepare a descriptor of operation prefill_kvcache");
  }
  if (layout == KvLayout::ragged) {
    check_numbers(checks, "kv_offsets", call.kv_offsets, DataType::int32, {batch + 1});
  } else {
    require_absent(checks, "kv_offsets", call.kv_offsets, "the keys are not ragged",
                   "leave it out, or prepare a descriptor with kv_layout ragged");
  }
  if (layout == KvLayout::paged || call.seq_lens.data != nullptr) {
    check_numbers(checks, "seq_lens", call.seq_lens, DataType::int32, {batch});
  }
}

std::size_t key_head_dimension(const AttentionDescriptor& descriptor, const TensorView& keys) {
  switch (key_layout_tag(descriptor)) {
    case KvLayoutTag::thd:
    case KvLayoutTag::bhsd:
      return 1;
    case KvLayoutTag::bshd:
      return 2;
    default:
      return head_dimension(keys, key_layout_tag(descriptor));
  }
}

CacheStrides key_strides(const AttentionDescriptor& descriptor, const TensorView& keys) {
  switch (key_layout_tag(descriptor)) {
    case KvLayoutTag::thd:
      return {0, 0, keys.strides[1], keys.strides[0]};
    case KvLayoutTag::bshd:
      return {keys.strides[0], 0, keys.strides[2], keys.strides[1]};
    case KvLayoutTag::bhsd:
      return {keys.strides[0], 0, keys.strides[1], keys.strides[2]};
    default:
      return cache_strides(keys, key_layout_tag(descriptor));
  }
}

CacheStrides rope_strides(const AttentionDescriptor& descriptor, const TensorView& rope) {
  const std::int64_t row = rope.strides.at(rope_token_dimension(descriptor));
  return reads_pages(descriptor) ? CacheStrides{0, rope.strides[0], 0, row}
                                 : CacheStrides{rope.strides[0], 0, 0, row};
}

namespace {

void set_rope(const AttentionDescriptor& descriptor, const PrefillCall& call,
              PrefillArguments& arguments) {
  const TensorView& rope = call.k_rope;
  const std::int64_t first_column = rope.shape[3] - rope_columns(descriptor);
  arguments.k_rope = static_cast<const unsigned char*>(rope.data) +
                     first_column * size_bytes(descriptor.dtype_rope);
  arguments.rope_strides = rope_strides(descriptor, rope);
  arguments.rope_extent =
      bounded_extent(reads_pages(descriptor) ? call.block_table.shape[1] * descriptor.page_size
                                             : rope.shape.at(rope_token_dimension(descriptor)));
}

}  // namespace

void set_prefill_keys(const AttentionDescriptor& descriptor, const PrefillCall& call,
                      PrefillArguments& arguments) {
  arguments.k = call.k.data;
  arguments.v = call.v.data;
  arguments.k_strides = key_strides(descriptor, call.k);
  arguments.v_strides = key_strides(descriptor, call.v);
  const std::int64_t extent = key_layout(descriptor) == KvLayout::paged
                                  ? call.block_table.shape[1] * descriptor.page_size
                                  : key_extent(descriptor, call);
  arguments.keys = {static_cast<const int*>(call.kv_offsets.data),
                    static_cast<const int*>(call.seq_lens.data), bounded_extent(extent)};
  arguments.block_table = static_cast<const int*>(call.block_table.data);
  arguments.block_table_stride = call.block_table.strides[0];
  if (has_rope(descriptor)) {
    set_rope(descriptor, call, arguments);
  }
}

}  // namespace attnjit
