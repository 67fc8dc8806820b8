#include "prefill_tensors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <initializer_list>

#include "attnjit/mask_formula.hpp"
#include "mask_contents.hpp"

namespace attnjit::check {
namespace {

constexpr std::int64_t rows_behind = 3;  // of ragged tensors, past the last request's
constexpr int unowned_segment = 123456;

template <typename Value>
SmallTensor make_tensor(TensorView PrefillCall::*place, DataType dtype,
                        std::initializer_list<std::int64_t> shape,
                        const std::vector<Value>& values) {
  SmallTensor tensor = {place, contiguous_view(nullptr, dtype, shape), {}};
  tensor.bytes.resize(values.size() * sizeof(Value));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

SmallTensor int_tensor(TensorView PrefillCall::*place, const std::vector<int>& values) {
  return make_tensor(place, DataType::int32, {static_cast<std::int64_t>(values.size())}, values);
}

int longest(const std::vector<int>& lengths) {
  return *std::max_element(lengths.begin(), lengths.end());
}

bool are_equal_to(const std::vector<int>& lengths, std::int64_t extent) {
  return std::all_of(lengths.begin(), lengths.end(), [&](int length) { return length == extent; });
}

std::vector<int> make_offsets(const std::vector<int>& lengths, int first, int unowned) {
  std::vector<int> offsets = {first};
  for (const int length : lengths) {
    offsets.push_back(offsets.back() + length + unowned);
  }
  return offsets;
}

std::vector<int> q_offsets(const PrefillCase& prefill_case) {
  return make_offsets(prefill_case.q_lens, prefill_case.rows_before, 0);
}

std::vector<int> kv_offsets(const PrefillCase& prefill_case) {
  return make_offsets(prefill_case.kv_lens, prefill_case.rows_before, prefill_case.unowned_rows);
}

bool is_ragged(const PrefillCase& prefill_case) {
  return prefill_case.query_layout == QueryLayout::ragged;
}

void add_lengths(std::vector<SmallTensor>& tensors, const PrefillCase& prefill_case) {
  const KvLayout kv_layout = prefill_case.descriptor.kv_layout;
  if (is_ragged(prefill_case)) {
    tensors.push_back(int_tensor(&PrefillCall::q_offsets, q_offsets(prefill_case)));
  } else if (!are_equal_to(prefill_case.q_lens, count_query_rows(prefill_case))) {
    tensors.push_back(int_tensor(&PrefillCall::q_lens, prefill_case.q_lens));
  }
  if (kv_layout == KvLayout::ragged) {
    tensors.push_back(int_tensor(&PrefillCall::kv_offsets, kv_offsets(prefill_case)));
  }
  const bool has_lengths = kv_layout == KvLayout::paged || prefill_case.unowned_rows > 0 ||
                           (kv_layout == KvLayout::dense &&
                            !are_equal_to(prefill_case.kv_lens, count_key_rows(prefill_case)));
  if (has_lengths) {
    tensors.push_back(int_tensor(&PrefillCall::seq_lens, prefill_case.kv_lens));
  }
  if (!prefill_case.query_positions.empty()) {
    tensors.push_back(int_tensor(&PrefillCall::query_positions, prefill_case.query_positions));
  }
  if (!prefill_case.key_positions.empty()) {
    tensors.push_back(int_tensor(&PrefillCall::key_positions, prefill_case.key_positions));
  }
}

// The extents of a mask, a tree or a block-sparse layout.
struct PairExtents {
  int batch;
  int heads;
  int queries;
};

PairExtents pair_extents(const PrefillCase& prefill_case, std::int64_t queries) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  PairExtents extents = {prefill_case.mask_extents.has_batch ? prefill_case.batch() : 1, 1,
                         static_cast<int>(queries)};
  if (prefill_case.mask_extents.heads == MaskExtents::Heads::q) {
    extents.heads = descriptor.num_q_heads;
  } else if (prefill_case.mask_extents.heads == MaskExtents::Heads::kv) {
    extents.heads = descriptor.num_kv_heads;
  }
  return extents;
}

// Calls write(batch, query head, query, place of the row's first byte) for every row.
template <typename Write>
SmallTensor make_pairs(TensorView PrefillCall::*place, const PrefillCase& prefill_case,
                       DataType dtype, const PairExtents& extents, int columns,
                       const Write& write) {
  SmallTensor tensor = {
      place,
      contiguous_view(nullptr, dtype, {extents.batch, extents.heads, extents.queries, columns}),
      {}};
  const auto row_bytes =
      static_cast<std::size_t>(columns) * static_cast<std::size_t>(size_bytes(dtype));
  const int q_heads_per_head = prefill_case.descriptor.num_q_heads / extents.heads;
  for (int b = 0; b < extents.batch; ++b) {
    for (int head = 0; head < extents.heads; ++head) {
      for (int query = 0; query < extents.queries; ++query) {
        tensor.bytes.resize(tensor.bytes.size() + row_bytes);
        write(b, head * q_heads_per_head, query,
              tensor.bytes.data() + tensor.bytes.size() - row_bytes);
      }
    }
  }
  return tensor;
}

// Multiples of 1/8 between -2 and 2, and -inf.
std::uint16_t exact_fp16(float value) {
  if (value == 0.0F) {
    return 0;
  }
  const unsigned sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isinf(value)) {
    return static_cast<std::uint16_t>(sign | 0x7c00);
  }
  int exponent = 0;
  const float fraction = std::frexp(std::abs(value), &exponent);  // in [1/2, 1)
  const auto mantissa = static_cast<unsigned>((fraction * 2 - 1) * 1024);
  return static_cast<std::uint16_t>(sign | (static_cast<unsigned>(exponent + 14) << 10) | mantissa);
}

void write_value(unsigned char* to, DataType dtype, float value) {
  if (dtype == DataType::fp32) {
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  const std::uint16_t bits =
      dtype == DataType::fp16
          ? exact_fp16(value)
          : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  std::memcpy(to, &bits, sizeof(bits));
}

// Of bits: as many bytes as `count` needs.
template <typename Bit>
void write_bits(unsigned char* to, int count, const Bit& bit) {
  for (int i = 0; i < count; ++i) {
    to[i / 8] = static_cast<unsigned char>(to[i / 8] | (bit(i) ? 1U << (i % 8) : 0U));
  }
}

// Queries of a request that a mask or a bias covers.
std::int64_t mask_rows(const PrefillCase& prefill_case) {
  return is_ragged(prefill_case) ? std::max(1, longest(prefill_case.q_lens))
                                 : count_query_rows(prefill_case);
}

void add_mask(std::vector<SmallTensor>& tensors, const PrefillCase& prefill_case) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  const std::int64_t rows = mask_rows(prefill_case);
  const int keys = mask_keys(prefill_case);
  const auto add = [&](std::int64_t queries, int columns, const auto& write) {
    tensors.push_back(make_pairs(&PrefillCall::mask, prefill_case, descriptor.dtype_mask,
                                 pair_extents(prefill_case, queries), columns, write));
  };
  const std::int64_t queries = prefill_case.mask_extents.has_queries ? rows : 1;
  if (has_mask(descriptor, MaskKind::materialized_bool)) {
    add(queries, keys, [&](int b, int head, int query, unsigned char* row) {
      for (int key = 0; key < keys; ++key) {  // any value but 0 shows
        row[key] = mask_bit(prefill_case, b, head, query, key)
                       ? static_cast<unsigned char>(1 + key % 255)
                       : 0;
      }
    });
  } else if (has_mask(descriptor, MaskKind::materialized_additive)) {
    add(queries, keys, [&](int b, int head, int query, unsigned char* row) {
      for (int key = 0; key < keys; ++key) {
        write_value(row + std::ptrdiff_t{key} * size_bytes(descriptor.dtype_mask),
                    descriptor.dtype_mask, mask_value(prefill_case, b, head, query, key));
      }
    });
  } else if (has_mask(descriptor, MaskKind::materialized_bits)) {
    add(queries, (keys + 7) / 8, [&](int b, int head, int query, unsigned char* row) {
      write_bits(row, keys, [&](int key) { return mask_bit(prefill_case, b, head, query, key); });
    });
  } else if (has_mask(descriptor, MaskKind::tree)) {
    const int drafts = std::max(1, longest(prefill_case.q_lens));
    add(rows, (drafts + 7) / 8, [&](int b, int head, int query, unsigned char* row) {
      write_bits(row, drafts,
                 [&](int draft) { return tree_bit(prefill_case, b, head, query, draft); });
    });
  }
}

void add_bias(std::vector<SmallTensor>& tensors, const PrefillCase& prefill_case) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  if (descriptor.score_modifier != ScoreModifier::additive_bias) {
    return;
  }
  const int keys = descriptor.kv_layout == KvLayout::dense
                       ? static_cast<int>(count_key_rows(prefill_case))
                       : mask_keys(prefill_case);
  const std::int64_t queries = prefill_case.mask_extents.has_queries ? mask_rows(prefill_case) : 1;
  tensors.push_back(make_pairs(
      &PrefillCall::bias, prefill_case, descriptor.dtype_bias, pair_extents(prefill_case, queries),
      keys, [&](int b, int head, int query, unsigned char* row) {
        for (int key = 0; key < keys; ++key) {
          write_value(row + std::ptrdiff_t{key} * size_bytes(descriptor.dtype_bias),
                      descriptor.dtype_bias, bias_value(prefill_case, b, head, query, key));
        }
      }));
}

void add_blocks(std::vector<SmallTensor>& tensors, const PrefillCase& prefill_case) {
  if (prefill_case.descriptor.sparsity != Sparsity::block) {
    return;
  }
  const int columns = key_blocks(prefill_case);
  tensors.push_back(make_pairs(&PrefillCall::block_mask, prefill_case, DataType::uint8,
                               pair_extents(prefill_case, query_blocks(prefill_case)), columns,
                               [&](int b, int head, int query_block, unsigned char* row) {
                                 for (int key_block = 0; key_block < columns; ++key_block) {
                                   row[key_block] =
                                       block_bit(prefill_case, b, head, query_block, key_block)
                                           ? static_cast<unsigned char>(1 + key_block % 255)
                                           : 0;
                                 }
                               }));
}

// One id per row, ragged or [batch, extent].
template <typename Position>
SmallTensor make_segments(TensorView PrefillCall::*place, const PrefillCase& prefill_case,
                          const std::vector<int>& lengths, const std::vector<int>& offsets,
                          std::int64_t rows, const Position& first_position) {
  const bool is_dense = offsets.empty();
  std::vector<int> ids(static_cast<std::size_t>(is_dense ? rows * prefill_case.batch() : rows),
                       unowned_segment);
  for (int b = 0; b < prefill_case.batch(); ++b) {
    const std::int64_t first = is_dense ? b * rows : offsets[static_cast<std::size_t>(b)];
    for (int i = 0; i < lengths[static_cast<std::size_t>(b)]; ++i) {
      ids[static_cast<std::size_t>(first + i)] =
          segment_id(prefill_case, first_position(prefill_case, b) + i);
    }
  }
  return is_dense ? make_tensor(place, DataType::int32, {prefill_case.batch(), rows}, ids)
                  : make_tensor(place, DataType::int32, {rows}, ids);
}

void add_segments(std::vector<SmallTensor>& tensors, const PrefillCase& prefill_case) {
  if (!has_mask(prefill_case.descriptor, MaskKind::document)) {
    return;
  }
  const bool has_ragged_keys = prefill_case.descriptor.kv_layout == KvLayout::ragged;
  tensors.push_back(
      make_segments(&PrefillCall::q_segments, prefill_case, prefill_case.q_lens,
                    is_ragged(prefill_case) ? q_offsets(prefill_case) : std::vector<int>{},
                    count_query_rows(prefill_case), first_query_position));
  tensors.push_back(make_segments(&PrefillCall::kv_segments, prefill_case, prefill_case.kv_lens,
                                  has_ragged_keys ? kv_offsets(prefill_case) : std::vector<int>{},
                                  count_key_rows(prefill_case), first_key_position));
}

void add_per_head(std::vector<SmallTensor>& tensors, const PrefillCase& prefill_case) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  const int heads = descriptor.num_q_heads;
  if (descriptor.score_modifier == ScoreModifier::alibi) {
    std::vector<float> slopes;
    for (int head = 0; head < heads; ++head) {
      slopes.push_back(std::exp2(-8.0F * static_cast<float>(head + 1) / static_cast<float>(heads)));
    }
    tensors.push_back(make_tensor(&PrefillCall::alibi_slopes, DataType::fp32, {heads}, slopes));
  }
  if (descriptor.has_sinks) {
    tensors.push_back(make_tensor(&PrefillCall::sinks, DataType::fp32, {heads},
                                  draw_sinks(heads, prefill_case.sinks, prefill_case.seed + 4)));
  }
}

// Contiguous but for what lies between rows: dimension `token` counts them.
TensorView padded_view(const PrefillCase& prefill_case, DataType dtype,
                       std::initializer_list<std::int64_t> shape, std::size_t token) {
  TensorView view = contiguous_view(nullptr, dtype, shape);
  view.strides.at(token) += prefill_case.row_padding;
  for (std::size_t i = token; i-- > 0;) {
    view.strides.at(i) = view.shape.at(i + 1) * view.strides.at(i + 1);
  }
  return view;
}

}  // namespace

std::vector<SmallTensor> make_small_tensors(const PrefillCase& prefill_case) {
  std::vector<SmallTensor> tensors;
  add_lengths(tensors, prefill_case);
  add_mask(tensors, prefill_case);
  add_bias(tensors, prefill_case);
  add_blocks(tensors, prefill_case);
  add_segments(tensors, prefill_case);
  add_per_head(tensors, prefill_case);
  if (has_mask(prefill_case.descriptor, MaskKind::prefix_lm)) {
    tensors.push_back(int_tensor(&PrefillCall::prefix_lens, prefill_case.prefix_lens));
  }
  return tensors;
}

std::int64_t count_query_rows(const PrefillCase& prefill_case) {
  if (is_ragged(prefill_case)) {
    return q_offsets(prefill_case).back() + rows_behind;
  }
  return std::max(1, longest(prefill_case.q_lens) + prefill_case.unowned_rows);
}

std::int64_t count_key_rows(const PrefillCase& prefill_case) {
  if (prefill_case.descriptor.kv_layout == KvLayout::ragged) {
    return kv_offsets(prefill_case).back() + rows_behind;
  }
  return std::max(1, longest(prefill_case.kv_lens) + prefill_case.unowned_rows);
}

TensorView query_view(const PrefillCase& prefill_case, DataType dtype, int head_dim) {
  const std::int64_t rows = count_query_rows(prefill_case);
  const std::int64_t heads = prefill_case.descriptor.num_q_heads;
  const std::int64_t batch = prefill_case.batch();
  switch (prefill_case.query_layout) {
    case QueryLayout::ragged:
      return padded_view(prefill_case, dtype, {rows, heads, head_dim}, 0);
    case QueryLayout::bshd:
      return padded_view(prefill_case, dtype, {batch, rows, heads, head_dim}, 1);
    case QueryLayout::bhsd:
      return permuted_view(padded_view(prefill_case, dtype, {batch, heads, rows, head_dim}, 2),
                           {0, 2, 1, 3});
  }
  return {};
}

TensorView key_view(const PrefillCase& prefill_case, int head_dim) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  const DataType dtype = descriptor.dtype_kv;
  const std::int64_t rows = count_key_rows(prefill_case);
  const std::int64_t heads = descriptor.num_kv_heads;
  const std::int64_t batch = prefill_case.batch();
  if (descriptor.kv_layout == KvLayout::ragged) {
    return padded_view(prefill_case, dtype, {rows, heads, head_dim}, 0);
  }
  return descriptor.kv_layout_tag == KvLayoutTag::bhsd
             ? padded_view(prefill_case, dtype, {batch, heads, rows, head_dim}, 2)
             : padded_view(prefill_case, dtype, {batch, rows, heads, head_dim}, 1);
}

std::int64_t span_bytes(const TensorView& view) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i) {
    last += (view.shape[i] - 1) * view.strides[i];
  }
  return (last + 1) * size_bytes(view.dtype);
}

}  // namespace attnjit::check
