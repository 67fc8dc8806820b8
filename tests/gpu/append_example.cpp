#include "append_example.hpp"

#include <algorithm>
#include <bit>
#include <random>

#include "nearest_fp8.hpp"

namespace attnjit::test {
namespace {

TensorView make_rows_view(const AppendExample& example, int head_dim) {
  const int heads = example.cache.num_kv_heads;
  const std::int64_t head = head_dim + example.padding;
  TensorView view =
      contiguous_view(nullptr, example.cache.dtype_q, {example.num_tokens(), heads, head_dim});
  view.strides = {heads * head, head, 1};
  if (example.is_dense()) {
    const int seqlen_new = example.counts[0];
    view = contiguous_view(nullptr, example.cache.dtype_q,
                           {example.batch(), seqlen_new, heads, head_dim});
    view.strides = {seqlen_new * heads * head, heads * head, head, 1};
  }
  return view;
}

TensorView make_cache_view(const AppendExample& example, int head_dim) {
  const bool hnd = example.cache.kv_layout_tag == KvLayoutTag::hnd;
  const int second = hnd ? example.cache.num_kv_heads : example.cache.page_size;
  const int third = hnd ? example.cache.page_size : example.cache.num_kv_heads;
  const std::int64_t page = std::int64_t{second} * third * head_dim + 8 * example.padding;
  TensorView view = contiguous_view(nullptr, example.cache.dtype_kv,
                                    {example.num_pages(), second, third, head_dim});
  view.strides[0] = page;
  if (example.has_caches_apart) {
    view = contiguous_view(nullptr, example.cache.dtype_kv,
                           {example.batch(), example.num_pages(), second, third, head_dim});
    view.strides[0] = example.num_pages() * page;
    view.strides[1] = page;
  }
  return view;
}

TensorView make_scales_view(const AppendExample& example) {
  const int heads = example.cache.num_kv_heads;
  switch (example.cache.scales_kv) {
    case ScaleGrain::per_tensor:
      return contiguous_view(nullptr, DataType::fp32, {1});
    case ScaleGrain::per_head:
      return example.has_scales_apart
                 ? contiguous_view(nullptr, DataType::fp32, {example.batch(), heads})
                 : contiguous_view(nullptr, DataType::fp32, {heads});
    default:
      return {};
  }
}

std::size_t row_offset(const AppendExample& example, const TensorView& view,
                       const AppendPlace& place, int head) {
  if (view.rank == 3) {
    return static_cast<std::size_t>(place.token * view.strides[0] + head * view.strides[1]);
  }
  const int seqlen_new = example.counts[0];
  return static_cast<std::size_t>(place.token / seqlen_new * view.strides[0] +
                                  place.token % seqlen_new * view.strides[1] +
                                  head * view.strides[2]);
}

std::size_t cache_offset(const AppendExample& example, const TensorView& view,
                         const AppendPlace& place, int head) {
  const bool hnd = example.cache.kv_layout_tag == KvLayoutTag::hnd;
  const std::size_t page = view.rank == 5 ? 1 : 0;
  return static_cast<std::size_t>(
      (view.rank == 5 ? place.request * view.strides[0] : 0) + place.page * view.strides[page] +
      place.row * view.strides[page + (hnd ? 2 : 1)] + head * view.strides[page + (hnd ? 1 : 2)]);
}

float scale_of(const AppendExample& example, const AppendSide& side, const AppendPlace& place,
               int head) {
  switch (example.cache.scales_kv) {
    case ScaleGrain::per_tensor:
      return side.scales[0];
    case ScaleGrain::per_head:
      return side
          .scales[(example.has_scales_apart ? place.request : 0) * example.cache.num_kv_heads +
                  head];
    default:
      return 1.0f;
  }
}

}  // namespace

std::vector<int> make_table(const AppendExample& example) {
  std::mt19937 random(11);
  std::vector<int> pages(static_cast<std::size_t>(example.num_pages()));
  std::iota(pages.begin(), pages.end(), 0);
  std::shuffle(pages.begin(), pages.end(), random);
  std::vector<int> table;
  for (int b = 0; b < example.batch(); ++b) {
    for (int column = 0; column < example.columns; ++column) {
      const int own = (example.has_caches_apart ? 0 : b) * example.columns + column;
      const bool is_missing = example.has_missing_pages && column % 3 == 1;
      const bool is_past = column * example.cache.page_size >= example.seq_lens[b];
      table.push_back(is_past      ? 2147480000
                      : is_missing ? (column % 2 == 0 ? -1 : example.num_pages())
                                   : pages[static_cast<std::size_t>(own)]);
    }
  }
  return table;
}

std::vector<AppendPlace> make_places(const AppendExample& example, const std::vector<int>& table) {
  const int page_size = example.cache.page_size;
  std::vector<AppendPlace> places;
  int token = example.strangers;
  for (int b = 0; b < example.batch(); ++b) {
    for (int i = 0; i < example.counts[b]; ++i, ++token) {
      const int position = example.seq_lens[b] - example.counts[b] + i;
      AppendPlace place = {token, b, -1, 0};
      if (position >= 0 && position < example.columns * page_size) {
        const int page = table[b * example.columns + position / page_size];
        place.page = page >= 0 && page < example.num_pages() ? page : -1;
        place.row = position % page_size;
      }
      places.push_back(place);
    }
  }
  return places;
}

std::vector<std::int64_t> make_slots(const AppendExample& example,
                                     const std::vector<AppendPlace>& places) {
  std::vector<std::int64_t> slots(static_cast<std::size_t>(example.num_tokens()), -1);
  const std::int64_t page_size = example.cache.page_size;
  for (const AppendPlace& place : places) {
    const std::int64_t outside = place.token % 2 == 0 ? example.num_pages() * page_size : -7;
    slots[place.token] = place.page >= 0 ? place.page * page_size + place.row : outside;
  }
  return slots;
}

AppendSide make_side(const AppendExample& example, int head_dim) {
  AppendSide side;
  side.rows_view = make_rows_view(example, head_dim);
  side.cache_view = make_cache_view(example, head_dim);
  side.scales_view = make_scales_view(example);
  side.rows.resize(static_cast<std::size_t>(example.num_tokens()) * example.cache.num_kv_heads *
                   (head_dim + example.padding));
  for (std::size_t i = 0; i < side.rows.size(); ++i) {
    side.rows[i] = static_cast<std::uint16_t>(i * 40503 + head_dim);
  }
  const std::int64_t elements = side.cache_view.shape[0] * side.cache_view.strides[0];
  side.cache.resize(static_cast<std::size_t>(elements * size_bytes(example.cache.dtype_kv)));
  std::mt19937 random(static_cast<unsigned>(head_dim));
  std::generate(side.cache.begin(), side.cache.end(),
                [&] { return static_cast<unsigned char>(random()); });
  for (int i = 0; i < example.batch() * example.cache.num_kv_heads; ++i) {
    side.scales.push_back(0.37f * static_cast<float>(i + 1));
  }
  return side;
}

Bytes expected_cache(const AppendExample& example, const AppendSide& side,
                     const std::vector<AppendPlace>& places, int head_dim) {
  const bool is_e4m3 = example.cache.dtype_kv == DataType::fp8_e4m3;
  const auto values = finite_fp8_values(is_e4m3 ? fp8_e4m3 : fp8_e5m2);
  const bool quantizes = example.cache.dtype_kv != example.cache.dtype_q;
  Bytes cache = side.cache;
  for (const AppendPlace& place : places) {
    for (int head = 0; place.page >= 0 && head < example.cache.num_kv_heads; ++head) {
      const std::uint16_t* row = &side.rows[row_offset(example, side.rows_view, place, head)];
      const std::size_t at = cache_offset(example, side.cache_view, place, head);
      const float scale = scale_of(example, side, place, head);
      for (int column = 0; column < head_dim; ++column) {
        const unsigned bits = row[column];
        if (!quantizes) {
          cache[2 * (at + column)] = static_cast<unsigned char>(bits);
          cache[2 * (at + column) + 1] = static_cast<unsigned char>(bits >> 8);
          continue;
        }
        const float value = example.cache.dtype_q == DataType::bf16
                                ? std::bit_cast<float>(bits << 16)
                                : fp16_value(bits);
        cache[at + column] = static_cast<unsigned char>(nearest_fp8(values, value / scale));
      }
    }
  }
  return cache;
}

}  // namespace attnjit::test
