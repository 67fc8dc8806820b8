// Block tables and caches of checked problems: by hand.
#include "cache_layout.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "catch.hpp"
#include "decode_suite.hpp"

namespace attnjit::check {
namespace {

constexpr int no_page = 2147480000;

TEST_CASE("a block table names a page for every key that is reached, and no page elsewhere") {
  const std::vector<KeyRange> keys = {{0, 9}, {7, 16}, {0, 0}, {20, 20}};
  const BlockTable table = make_block_table(keys, 4, CacheArrangement::pool, 1);
  REQUIRE(table.columns == 5 + 2);
  REQUIRE(table.ids.size() == 4 * 7);
  std::vector<int> pages;
  const std::vector<std::vector<int>> has_page = {
      {1, 1, 1, 0, 0, 0, 0}, {0, 1, 1, 1, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0}};
  for (std::size_t b = 0; b < 4; ++b) {
    for (std::size_t i = 0; i < 7; ++i) {
      const int id = table.ids[b * 7 + i];
      CHECK((id != no_page) == (has_page[b][i] == 1));
      if (id != no_page) {
        pages.push_back(id);
      }
    }
  }
  CHECK(std::set<int>(pages.begin(), pages.end()).size() == pages.size());
  CHECK(*std::max_element(pages.begin(), pages.end()) < table.num_pages);
  CHECK(make_block_table(keys, 4, CacheArrangement::pool, 1).ids == table.ids);
  CHECK(make_block_table(keys, 4, CacheArrangement::pool, 2).ids != table.ids);
}

TEST_CASE("a cache lies as its arrangement and layout tag say") {
  AttentionDescriptor descriptor = gqa_descriptor(4, 2, 64, 1);
  descriptor.page_size = 16;
  const auto described = [&](CacheArrangement arrangement) {
    return describe(lay_out_cache(descriptor, arrangement, 3, 5, 64).view);
  };
  CHECK(described(CacheArrangement::pool) == "bf16 [5, 16, 2, 64], strides [2048, 128, 64, 1]");
  CHECK(described(CacheArrangement::layered) == "bf16 [5, 16, 2, 64], strides [4096, 128, 64, 1]");
  CHECK(described(CacheArrangement::per_request) ==
        "bf16 [3, 5, 16, 2, 64], strides [10240, 1024, 64, 5120, 1]");
  CHECK(lay_out_cache(descriptor, CacheArrangement::layered, 3, 5, 64).bytes == 5 * 4096 * 2);
  descriptor.kv_layout_tag = KvLayoutTag::hnd;
  CHECK(described(CacheArrangement::pool) == "bf16 [5, 2, 16, 64], strides [2048, 1024, 64, 1]");
}

}  // namespace
}  // namespace attnjit::check
