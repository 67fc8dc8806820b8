// templates/device/cache_place.cuh under the host compiler: every new token has the place of its
// position, and what has none is written nowhere.
#define __device__
#define __forceinline__ inline
#include "device/cache_place.cuh"

#include <climits>
#include <cstdint>
#include <random>
#include <vector>

#include "catch.hpp"

static bool operator==(const CachePlace& a, const CachePlace& b) {
  return a.page == b.page && (a.page < 0 || (a.row == b.row && a.request == b.request));
}

namespace {

using namespace attnjit::kernel_interface;

constexpr CachePlace nowhere = {-1, 0, 0};

// A batch with a table of `columns` random pages per request, some of them not in the cache.
struct Batch {
  int num_pages = 9;
  int columns = 5;
  std::vector<int> counts;  // of new tokens
  std::vector<int> seq_lens;
  std::vector<int> offsets = {0};
  std::vector<int> table;

  Batch(std::mt19937& random, int batch, int page_size) {
    for (int b = 0; b < batch; ++b) {
      counts.push_back(random() % 3 == 0 ? 0 : static_cast<int>(random() % 7));
      offsets.push_back(offsets.back() + counts.back());
      seq_lens.push_back(static_cast<int>(random() % static_cast<unsigned>(6 * page_size)));
      for (int column = 0; column < columns; ++column) {
        table.push_back(static_cast<int>(random() % 12) - 1);
      }
    }
  }

  NewTokenPlaces places() const {
    NewTokenPlaces result = {};
    result.new_offsets = offsets.data();
    result.seq_lens = seq_lens.data();
    result.block_table = table.data();
    result.block_table_stride = columns;
    result.num_pages = num_pages;
    result.block_table_columns = columns;
    result.batch = static_cast<int>(counts.size());
    result.num_tokens = offsets.back();
    result.tokens_per_batch = result.num_tokens;
    return result;
  }

  CachePlace place_of_position(int request, int position, int page_size) const {
    if (position < 0 || position >= columns * page_size) {
      return nowhere;
    }
    const int page = table[static_cast<std::size_t>(request * columns + position / page_size)];
    return page >= 0 && page < num_pages ? CachePlace{page, position % page_size, request}
                                         : nowhere;
  }
};

template <int page_size>
int count_errors(std::mt19937& random, int batch_size) {
  const Batch batch(random, batch_size, page_size);
  int errors = 0;
  int token = 0;
  for (int b = 0; b < batch_size; ++b) {
    const int count = batch.counts[static_cast<std::size_t>(b)];
    const int start = batch.seq_lens[static_cast<std::size_t>(b)] - count;
    for (int i = 0; i < count; ++i, ++token) {
      errors += !(find_cache_place<page_size>(batch.places(), token) ==
                  batch.place_of_position(b, start + i, page_size));
    }
  }
  return errors;
}

TEST_CASE("a request's new tokens take its last positions, whatever requests have none") {
  std::mt19937 random(3);
  int errors = 0;
  for (int repetition = 0; repetition < 50; ++repetition) {
    for (const int batch : {1, 2, 3, 8, 33}) {
      errors += count_errors<1>(random, batch) + count_errors<3>(random, batch) +
                count_errors<16>(random, batch) + count_errors<256>(random, batch);
    }
  }
  CHECK(errors == 0);
}

TEST_CASE("tokens outside the offsets are no request's") {
  const std::vector<int> offsets = {2, 2, 5};
  const std::vector<int> seq_lens = {0, 64};
  const std::vector<int> table = {0, 0};
  NewTokenPlaces places = {};
  places.new_offsets = offsets.data();
  places.seq_lens = seq_lens.data();
  places.block_table = table.data();
  places.block_table_stride = 1;
  places.block_table_columns = 1;
  places.num_pages = 1;
  places.batch = 2;
  places.num_tokens = places.tokens_per_batch = 7;
  const auto place = [&](int token) { return find_cache_place<64>(places, token); };
  CHECK(place(1) == nowhere);
  CHECK(place(2) == CachePlace{0, 61, 1});
  CHECK(place(4) == CachePlace{0, 63, 1});
  CHECK(place(5) == nowhere);
  places.batch = 0;
  CHECK(place(2) == nowhere);
}

TEST_CASE("without offsets every request has as many tokens") {
  const std::vector<int> seq_lens = {1, 5, INT_MIN};
  const std::vector<int> table = {7, 7, 3, 2, 0, 0};
  NewTokenPlaces places = {};
  places.seq_lens = seq_lens.data();
  places.block_table = table.data();
  places.block_table_stride = 2;
  places.block_table_columns = 2;
  places.num_pages = 8;
  places.batch = 3;
  places.num_tokens = 6;
  places.tokens_per_batch = 2;
  const auto place = [&](int token) { return find_cache_place<4>(places, token); };
  CHECK(place(0) == nowhere);  // of position -1
  CHECK(place(1) == CachePlace{7, 0, 0});
  CHECK(place(2) == CachePlace{3, 3, 1});
  CHECK(place(3) == CachePlace{2, 0, 1});
  CHECK(place(4) == nowhere);
}

TEST_CASE("slots of either width count through the pages; none leads outside them") {
  const std::vector<int> narrow = {0, 5, 11, 12, -1, INT_MIN};
  const std::vector<std::int64_t> wide = {0,         5,        11, 12, -1, std::int64_t{1} << 32,
                                          INT64_MAX, INT64_MIN};
  NewTokenPlaces places = {};
  places.num_pages = 4;
  const auto check_places = [&](std::size_t count) {
    places.num_tokens = places.tokens_per_batch = static_cast<int>(count);
    const auto place = [&](int token) { return find_cache_place<3>(places, token); };
    CHECK(place(0) == CachePlace{0, 0, 0});
    CHECK(place(1) == CachePlace{1, 2, 0});
    CHECK(place(2) == CachePlace{3, 2, 0});
    for (std::size_t i = 3; i < count; ++i) {
      CHECK(place(static_cast<int>(i)) == nowhere);
    }
  };
  places.slot_mapping = narrow.data();
  places.slot_bytes = 4;
  check_places(narrow.size());
  places.slot_mapping = wide.data();
  places.slot_bytes = 8;
  check_places(wide.size());
}

}  // namespace
