// Tensors of the contract's cases on the host: rows in order, wherever they lie.
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "catch.hpp"
#include "default_scale.hpp"
#include "element_bits.hpp"
#include "host_tensor.hpp"
#include "new_tokens.hpp"
#include "rope_cache.hpp"

namespace attnjit::contract {
namespace {

// Element (token, head, column) is 100 * token + 10 * head + column.
HostTensor numbered_tokens(int tokens, int heads, int columns) {
  HostTensor tensor = poisoned_tensor(DataType::bf16, {tokens, heads, columns});
  for_each_row(tensor.view, [&](const RowIndex& index) {
    for (int column = 0; column < columns; ++column) {
      tensor.row(index)[column] =
          static_cast<std::uint16_t>(100 * index[0] + 10 * index[1] + column);
    }
  });
  return tensor;
}

TEST_CASE("every row of a tensor is visited once, outer dimensions first") {
  std::vector<std::pair<std::int64_t, std::int64_t>> visited;
  for_each_row(contiguous_view(nullptr, DataType::bf16, {2, 3, 8}),
               [&](const RowIndex& index) { visited.emplace_back(index[0], index[1]); });
  CHECK(visited == std::vector<std::pair<std::int64_t, std::int64_t>>{
                       {0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}});
}

TEST_CASE("a row lies where the strides say") {
  HostTensor tensor = numbered_tokens(3, 2, 8);
  CHECK(*tensor.row({2, 1}) == 210);
  tensor.view = permuted_view(tensor.view, {1, 0, 2});
  CHECK(*tensor.row({1, 2}) == 210);
}

TEST_CASE("tokens by head are the tokens of each request, head by head") {
  HostTensor sorted = by_head(numbered_tokens(6, 2, 8), 2);
  CHECK(describe(sorted.view) == "bf16 [2, 2, 3, 8], strides [48, 24, 8, 1]");
  for (int request = 0; request < 2; ++request) {
    for (int head = 0; head < 2; ++head) {
      for (int token = 0; token < 3; ++token) {
        CHECK(sorted.row({request, head, token})[7] == 100 * (request * 3 + token) + 10 * head + 7);
      }
    }
  }
}

TEST_CASE("a cached token's row has page, row and head where the layout has them") {
  AttentionDescriptor descriptor;
  const TensorView pool = contiguous_view(nullptr, DataType::bf16, {9, 64, 4, 128});
  const TensorView caches = contiguous_view(nullptr, DataType::bf16, {2, 9, 4, 64, 128});
  CHECK(cache_row(descriptor, pool, 1, 5, 63, 3) == RowIndex{5, 63, 3});
  descriptor.kv_layout_tag = KvLayoutTag::hnd;
  CHECK(cache_row(descriptor, pool, 1, 5, 63, 3) == RowIndex{5, 3, 63});
  CHECK(cache_row(descriptor, caches, 1, 5, 63, 3) == RowIndex{1, 5, 3, 63});
}

TEST_CASE("a façade is given no scale where its default is meant") {
  CHECK(facade_scale(static_cast<float>(default_scale(128)), 128) == 0.0F);
  CHECK(facade_scale(static_cast<float>(default_scale(128)), 64) != 0.0F);
  CHECK(facade_scale(0.3F, 64) == 0.3F);
}

// Of 3 requests.
check::PrefillCase ragged_keys(const std::vector<int>& kv_lens) {
  check::PrefillCase prefill_case;
  prefill_case.q_lens = {1, 2, 3};
  prefill_case.kv_lens = kv_lens;
  return prefill_case;
}

TEST_CASE("every key has a row of its own in a rope's cache, paged or dense") {
  for (const int page_size : {0, 1, 64}) {
    const check::PrefillCase prefill_case =
        ragged_keys(page_size == 0 ? std::vector<int>{70, 70, 70} : std::vector<int>{65, 0, 128});
    const RopeCachePlaces places(prefill_case, {.page_size = page_size, .width = 64});
    const HostTensor cache = places.cache(DataType::bf16, 64, poison_bits);
    std::set<RowIndex> rows;
    for (int b = 0; b < prefill_case.batch(); ++b) {
      for (int key = 0; key < prefill_case.kv_len(b); ++key) {
        const RowIndex row = places.place(b, key);
        CHECK((row[0] < cache.view.shape[0] && row[1] < cache.view.shape[1]));
        rows.insert(row);
      }
    }
    CHECK(rows.size() == (page_size == 0 ? 210 : 193));
    CHECK(cache.columns() == 64);
  }
}

TEST_CASE("requests' keys lie end to end behind the rows before them") {
  CHECK(key_offsets(ragged_keys({65, 0, 128})) == std::vector<int>{2, 67, 67, 195});
}

TEST_CASE("e4m3 codes and bf16 values are those that are nearest") {
  for (int code = 0; code < 0x7f; ++code) {
    const auto byte = static_cast<unsigned char>(code);
    CHECK(check::e4m3_code(check::e4m3_value(byte)) == byte);
  }
  CHECK(check::e4m3_value(0x7e) == 448);
  CHECK(check::e4m3_value(0x81) == -std::ldexp(1.0F, -9));
  CHECK(check::e4m3_code(1e9) == 0x7e);
  CHECK(check::e4m3_code(-1.05) == 0xb8);
  CHECK(check::bf16_bits(1.0F) == 0x3f80);
  CHECK(check::round_to_bf16(1.0F + 0x1p-8F) == 1.0F);  // halfway: to even
  CHECK(check::round_to_bf16(1.0F + 0x3p-8F) == 1.0F + 0x1p-6F);
}

}  // namespace
}  // namespace attnjit::contract
