#include "rope_fp8_example.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <fmt/format.h>

namespace attnjit::test {
namespace {

// Of 2^-2 to 2, all their 24 bits used.
std::vector<float> random_scales(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> scales;
  for (int i = 0; i < count; ++i) {
    scales.push_back(0.25F + 1.75F * static_cast<float>(random() >> 8) * 0x1p-24F);
  }
  return scales;
}

int scale_columns(const RopeFp8Example& example) {
  return example.scales == FlareScales::rope_blocks
             ? example.shape.rope_columns() / columns_per_scale
             : 0;
}

// Of a key, as the kernel multiplies it: in bf16, rounded once, if it has a scale.
double rope_value(const RopeFp8Tensors& tensors, int key, int column, int scales_per_key) {
  const double element = tensors.rope.at(key, column);
  if (scales_per_key == 0) {
    return element;
  }
  const auto scale = static_cast<std::size_t>(key * scales_per_key + column / columns_per_scale);
  return from_bf16(to_bf16(static_cast<float>(element) * tensors.rope_scales.at(scale)));
}

HostAttention request_attention(const RopeFp8Example& example, const RopeFp8Tensors& tensors,
                                int request) {
  const RopeExample& shape = example.shape;
  const int first_query = offsets_of(shape.queries)[static_cast<std::size_t>(request)];
  const int first_key = offsets_of(shape.keys)[static_cast<std::size_t>(request)];
  HostAttention attention;
  attention.num_q_heads = attention.num_kv_heads = shape.heads;
  attention.seqlen_q = shape.queries[static_cast<std::size_t>(request)];
  attention.seq_lens = {shape.keys[static_cast<std::size_t>(request)]};
  attention.head_dim_qk = shape.q_depth;
  attention.head_dim_v = shape.depth;
  attention.softmax_scale = example.softmax_scale();
  attention.is_causal = shape.mask == MaskKind::causal;
  attention.q = [&, first_query](int, int head, int query, int column) {
    const int row = (first_query + query) * shape.heads + head;
    if (!example.has_q_rope()) {
      return tensors.q.at(row, column);
    }
    const double value = column < shape.depth ? tensors.q.at(row, column)
                                              : tensors.q_rope.at(row, column - shape.depth);
    return value * double{tensors.q_scales.at(static_cast<std::size_t>(first_query + query))};
  };
  attention.k = [&, first_key](int, int head, int token, int column) {
    const int key = first_key + token;
    const double value = column < shape.depth ? tensors.k.at(key * shape.heads + head, column)
                                              : rope_value(tensors, key, column - shape.depth,
                                                           scale_columns(example));
    return example.has_q_rope() ? value * double{tensors.k_scales.at(static_cast<std::size_t>(key))}
                                : value;
  };
  attention.v = [&, first_key](int, int head, int token, int column) {
    return tensors.v.at((first_key + token) * shape.heads + head, column);
  };
  return attention;
}

}  // namespace

FlareMlaPrefillShape RopeFp8Example::call_shape() const {
  return {.num_heads = shape.heads,
          .q_depth = shape.q_depth,
          .depth = shape.depth,
          .page_size = shape.page_size,
          .returns_lse = true,
          .mask = shape.mask,
          .dtype = dtype,
          .dtype_rope = dtype_rope,
          .scales = scales};
}

double RopeFp8Example::softmax_scale() const {
  return 1.0F / std::sqrt(static_cast<float>(shape.q_depth));
}

std::string describe(const RopeFp8Example& example) {
  return fmt::format("{}, rope {}, scales {} | {}", to_string(example.dtype),
                     to_string(example.dtype_rope), static_cast<int>(example.scales),
                     describe(example.shape));
}

RopeFp8Tensors::RopeFp8Tensors(const RopeFp8Example& example)
    : q(random_normal(example.shape.total_queries() * example.shape.heads,
                      example.has_q_rope() ? example.shape.depth : example.shape.q_depth,
                      example.dtype, 11)),
      q_rope(random_normal(example.shape.total_queries() * example.shape.heads,
                           example.shape.rope_columns(), DataType::bf16, 12)),
      k(random_normal(example.shape.total_keys() * example.shape.heads, example.shape.depth,
                      example.dtype, 13)),
      v(random_normal(example.shape.total_keys() * example.shape.heads, example.shape.depth,
                      example.dtype, 14)),
      rope(random_normal(example.shape.total_keys(), example.shape.rope_columns(),
                         example.dtype_rope, 15)),
      q_scales(random_scales(example.shape.total_queries(), 16)),
      k_scales(random_scales(example.shape.total_keys(), 17)),
      rope_scales(random_scales(example.shape.total_keys() * scale_columns(example), 18)) {}

HostResult expected_result(const RopeFp8Example& example, const RopeFp8Tensors& tensors) {
  HostResult result;
  for (int b = 0; b < example.shape.batch(); ++b) {
    const HostResult request = compute(request_attention(example, tensors, b));
    result.out.insert(result.out.end(), request.out.begin(), request.out.end());
    result.lse.insert(result.lse.end(), request.lse.begin(), request.lse.end());
  }
  return result;
}

Bytes chunk_rows(const RopeExample& example, const KeyChunk& chunk, const Bytes& elements,
                 std::int64_t key_bytes) {
  const Numbers from = offsets_of(example.keys);
  const Numbers to = row_offsets(example, chunk);
  Bytes rows(static_cast<std::size_t>(to.back() * key_bytes), 0xff);
  for (int b = 0; b < example.batch(); ++b) {
    const std::int64_t keys = chunk.end[b] - chunk.begin[b];
    std::copy_n(elements.begin() + (from[b] + chunk.begin[b]) * key_bytes, keys * key_bytes,
                rows.begin() + to[b] * key_bytes);
  }
  return rows;
}

// Past a request's last page the table leads nowhere. Pages have a row of nobody behind them, and
// some pages are no request's.
CacheRows place_rows(const RopeExample& example) {
  CacheRows cache;
  if (!example.is_paged()) {
    cache.num_pages = example.batch();
    cache.num_rows = example.total_keys();
    cache.page_rows = example.keys.front();
    cache.rows.resize(static_cast<std::size_t>(cache.num_rows));
    std::iota(cache.rows.begin(), cache.rows.end(), 0);
    return cache;
  }
  const auto pages_of = [&](int keys) {
    return (keys + example.page_size - 1) / example.page_size;
  };
  int owned = 0;
  for (const int keys : example.keys) {
    owned += pages_of(keys);
    cache.columns = std::max(cache.columns, pages_of(keys) + 2);
  }
  cache.num_pages = owned + 3;
  cache.page_rows = example.page_size + 1;
  cache.num_rows = cache.num_pages * cache.page_rows;
  Numbers pages(static_cast<std::size_t>(cache.num_pages));
  std::iota(pages.begin(), pages.end(), 0);
  std::shuffle(pages.begin(), pages.end(), std::mt19937(5));
  cache.table.assign(example.keys.size() * static_cast<std::size_t>(cache.columns), 2147480000);
  std::size_t next_page = 0;
  for (int b = 0; b < example.batch(); ++b) {
    for (int i = 0; i < pages_of(example.keys[b]); ++i) {
      cache.table[b * cache.columns + i] = pages[next_page++];
    }
    for (int key = 0; key < example.keys[b]; ++key) {
      const std::int64_t page = cache.table[b * cache.columns + key / example.page_size];
      cache.rows.push_back(page * cache.page_rows + key % example.page_size);
    }
  }
  return cache;
}

Bytes cache_bytes(const CacheRows& rows, const Bytes& elements, std::int64_t key_bytes,
                  std::int64_t row_bytes) {
  Bytes cache(static_cast<std::size_t>(rows.num_rows * row_bytes), 0xff);
  for (std::size_t key = 0; key < rows.rows.size(); ++key) {
    std::copy_n(elements.begin() + static_cast<std::int64_t>(key) * key_bytes, key_bytes,
                cache.begin() + (rows.rows[key] + 1) * row_bytes - key_bytes);
  }
  return cache;
}

TensorView cache_view(const RopeExample& example, const CacheRows& rows, DataType dtype,
                      std::int64_t width) {
  const std::int64_t tokens = example.is_paged() ? example.page_size : rows.page_rows;
  TensorView view = contiguous_view(nullptr, dtype, {rows.num_pages, tokens, 1, width});
  view.strides[0] = rows.page_rows * width;
  return view;
}

}  // namespace attnjit::test
