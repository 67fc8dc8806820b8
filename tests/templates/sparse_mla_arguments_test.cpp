// templates/interface/sparse_mla_arguments.h: where tokens lie, and which entries are looked at.
#include "interface/sparse_mla_arguments.h"

#include <climits>

#include "catch.hpp"

namespace {

using namespace attnjit::kernel_interface;

TokenPool pool_of(int page_size, long long num_pages, long long page_stride, long long row_stride) {
  return {nullptr, page_stride, row_stride, num_pages * page_size, page_size};
}

TEST_CASE("a token lies in its page's row, an index that names none lies nowhere") {
  const TokenPool pool = pool_of(61, 9, 70000, 1152);
  CHECK(token_offset(pool, 0) == 0);
  CHECK(token_offset(pool, 60) == 60 * 1152);
  CHECK(token_offset(pool, 61) == 70000);
  CHECK(token_offset(pool, 9 * 61 - 1) == 8 * 70000 + 60 * 1152);
  for (const int index : {-1, INT_MIN, -123456, 9 * 61, 2147480000, INT_MAX}) {
    CHECK(token_offset(pool, index) == -1);
  }
  CHECK(token_offset(pool_of(64, 0, 0, 0), 0) == -1);
}

TEST_CASE("addresses of tokens are 64 bits wide") {
  const TokenPool rows = pool_of(1, 2000000000, 1152, 0);
  CHECK(token_offset(rows, 1999999999) == 1999999999LL * 1152);
  const TokenPool pages = pool_of(2000000000, 1, 0, 656);
  CHECK(token_offset(pages, 1999999999) == 1999999999LL * 656);
  CHECK(scales_offset(pages, 1999999999, 576, 8) == 2000000000LL * 576 + 1999999999LL * 8);
  CHECK(token_offset(pool_of(1000000000, 4, 1LL << 50, 656), INT_MAX) ==
        2 * (1LL << 50) + 147483647LL * 656);
}

TEST_CASE("scales that lie apart follow all rows of their page") {
  const TokenPool pool = pool_of(61, 9, 61 * 584, 576);
  CHECK(scales_offset(pool, 0, 576, 8) == 61 * 576);
  CHECK(scales_offset(pool, 60, 576, 8) == 61 * 584 - 8);
  CHECK(scales_offset(pool, 62, 576, 8) == 61 * 584 + 61 * 576 + 8);
}

TEST_CASE("a list is looked at up to its length, never past its end") {
  const TokenIndices indices = {nullptr, nullptr, 0, 0, 100};
  CHECK(visible_entries(indices, 100) == 100);
  CHECK(visible_entries(indices, 101) == 100);
  CHECK(visible_entries(indices, INT_MAX) == 100);
  CHECK(visible_entries(indices, 99) == 99);
  CHECK(visible_entries(indices, 0) == 0);
  CHECK(visible_entries(indices, -5) == 0);
}

}  // namespace
