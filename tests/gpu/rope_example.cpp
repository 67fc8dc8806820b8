#include "rope_example.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attnjit::test {
namespace {

constexpr std::uint16_t nan_bits = 0xffff;  // a NaN of both element types

// Of magnitude 1/8 to 2.
Bits random_elements(DataType dtype, int count, unsigned seed) {
  std::mt19937 random(seed);
  Bits elements;
  for (int i = 0; i < count; ++i) {
    const auto bits = static_cast<unsigned>(random());
    const unsigned magnitude = dtype == DataType::bf16 ? (124 + bits % 4) << 7 | bits / 16 % 128
                                                       : (12 + bits % 4) << 10 | bits / 16 % 1024;
    elements.push_back(static_cast<std::uint16_t>(magnitude | (bits >> 31) << 15));
  }
  return elements;
}

void copy_row(const Bits& from, std::int64_t row, std::int64_t columns, Bits& to,
              std::int64_t place) {
  std::copy_n(from.begin() + row * columns, columns, to.begin() + place);
}

int pages_of(const RopeExample& example, int request) {
  return (example.keys[request] + example.page_size - 1) / example.page_size;
}

// Past a request's last page the table leads nowhere. Pages have a gap behind them.
RopeCache make_paged_cache(const RopeExample& example, const RopeTensors& tensors, int shift) {
  RopeCache cache;
  std::vector<int> pages(3, 0);
  for (int b = 0; b < example.batch(); ++b) {
    pages.resize(pages.size() + pages_of(example, b));
    cache.columns = std::max(cache.columns, pages_of(example, b) + 2);
  }
  std::iota(pages.begin(), pages.end(), 0);
  std::shuffle(pages.begin(), pages.end(), std::mt19937(5));
  const std::int64_t page = (std::int64_t{example.page_size} + 1) * example.width;
  cache.elements.assign(pages.size() * page, nan_bits);
  cache.table.assign(static_cast<std::size_t>(example.batch()) * cache.columns, 2147480000);
  const Numbers first_key = offsets_of(example.keys);
  std::size_t next_page = 0;
  for (int b = 0; b < example.batch(); ++b) {
    for (int i = 0; i < pages_of(example, b); ++i) {
      cache.table[b * cache.columns + i] = pages[next_page++];
    }
    for (int key = 0; key < example.keys[b]; ++key) {
      const int physical = cache.table[b * cache.columns + key / example.page_size];
      copy_row(tensors.rope, first_key[b] + (key + shift) % example.keys[b], example.rope_columns(),
               cache.elements,
               physical * page + (key % example.page_size + 1) * std::int64_t{example.width} -
                   example.rope_columns());
    }
  }
  const auto count = static_cast<std::int64_t>(pages.size());
  cache.view =
      contiguous_view(nullptr, example.dtype, {count, example.page_size, 1, example.width});
  cache.view.strides[0] = page;
  return cache;
}

RopeCache make_dense_cache(const RopeExample& example, const RopeTensors& tensors, int shift) {
  RopeCache cache;
  const int keys = example.keys[0];
  const int rows = example.batch() * keys;
  cache.elements.assign(static_cast<std::size_t>(rows) * example.width, nan_bits);
  for (int row = 0; row < rows; ++row) {
    copy_row(tensors.rope, row / keys * keys + (row % keys + shift) % keys, example.rope_columns(),
             cache.elements, (row + 1) * std::int64_t{example.width} - example.rope_columns());
  }
  cache.view = contiguous_view(nullptr, example.dtype, {example.batch(), keys, 1, example.width});
  return cache;
}

}  // namespace

Numbers RopeExample::cached() const {
  Numbers cached;
  for (int b = 0; b < batch(); ++b) {
    cached.push_back(keys[b] - queries[b]);
  }
  return cached;
}

RopeExample dense_example(RopeExample example) {
  example.page_size = 0;
  example.keys.assign(example.queries.size(), 150);
  return example;
}

std::string describe(const RopeExample& example) {
  return fmt::format("{}, {} heads, {}/{} columns, pages of {}, rows of {}, {}, {} queries",
                     to_string(example.dtype), example.heads, example.q_depth, example.depth,
                     example.page_size, example.width, to_string(example.mask),
                     fmt::join(example.queries, ", "));
}

Numbers offsets_of(const Numbers& counts, int first) {
  Numbers offsets = {first};
  for (const int count : counts) {
    offsets.push_back(offsets.back() + count);
  }
  return offsets;
}

RopeTensors::RopeTensors(const RopeExample& example)
    : q(random_elements(example.dtype, example.total_queries() * example.heads * example.q_depth,
                        1)),
      k(random_elements(example.dtype, example.total_keys() * example.heads * example.depth, 2)),
      v(random_elements(example.dtype, example.total_keys() * example.heads * example.depth, 3)),
      rope(random_elements(example.dtype, example.total_keys() * example.rope_columns(), 4)) {}

Bits whole_keys(const RopeExample& example, const RopeTensors& tensors) {
  const int rows = example.total_keys() * example.heads;
  Bits whole(static_cast<std::size_t>(rows) * example.q_depth);
  for (int row = 0; row < rows; ++row) {
    const std::int64_t place = std::int64_t{row} * example.q_depth;
    copy_row(tensors.k, row, example.depth, whole, place);
    copy_row(tensors.rope, row / example.heads, example.rope_columns(), whole,
             place + example.depth);
  }
  return whole;
}

KeyChunk all_keys(const RopeExample& example) {
  return {Numbers(example.keys.size(), 0), example.keys};
}

Numbers row_offsets(const RopeExample& example, const KeyChunk& chunk) {
  Numbers rows;
  for (int b = 0; b < example.batch(); ++b) {
    const int keys = chunk.end[b] - chunk.begin[b];
    rows.push_back(chunk.end[b] == example.keys[b] ? (keys + 63) / 64 * 64 : keys);
  }
  return offsets_of(rows, 5);
}

Bits rows_of_chunk(const RopeExample& example, const KeyChunk& chunk, const Bits& elements) {
  const Numbers from = offsets_of(example.keys);
  const Numbers to = row_offsets(example, chunk);
  const std::int64_t columns = std::int64_t{example.heads} * example.depth;
  Bits rows(static_cast<std::size_t>(to.back() * columns), nan_bits);
  for (int b = 0; b < example.batch(); ++b) {
    for (int key = chunk.begin[b]; key < chunk.end[b]; ++key) {
      copy_row(elements, from[b] + key, columns, rows, (to[b] + key - chunk.begin[b]) * columns);
    }
  }
  return rows;
}

RopeCache make_cache(const RopeExample& example, const RopeTensors& tensors, int shift) {
  RopeCache cache = example.is_paged() ? make_paged_cache(example, tensors, shift)
                                       : make_dense_cache(example, tensors, shift);
  if (example.heads_first) {
    cache.view = permuted_view(cache.view, {0, 2, 1, 3});
  }
  return cache;
}

}  // namespace attnjit::test
