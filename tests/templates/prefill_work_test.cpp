// templates/device/prefill_work.cuh under the host compiler, for the ratio and tile of a case: the
// row tiles of a call cover every request's rows once, whatever their lengths.
#include "host_warp.hpp"

#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "catch.hpp"

// Of one case only: other cases of this file are in the same program.
namespace ATTNJIT_CASE {
#include "device/prefill_work.cuh"
}  // namespace ATTNJIT_CASE

namespace {

using namespace ATTNJIT_CASE;
using namespace ATTNJIT_CASE::attnjit::kernel_interface;

using Numbers = std::vector<int>;

// What the lanes of a warp find; they must agree.
PrefillWork work_of(const PrefillArguments& arguments, int tile) {
  const auto found = host_warp::run_lanes([&] { return find_work(arguments, tile, 2); });
  for (const PrefillWork& work : found) {
    REQUIRE(work.request == found[0].request);
    REQUIRE(work.first_row == found[0].first_row);
  }
  return found[0];
}

int num_row_tiles(int tokens) {
  return tokens > 0 ? (tokens * config::q_per_kv + config::block_m - 1) / config::block_m : 0;
}

// How often each row tile of each request is found by tiles 0 to `tiles` - 1.
std::vector<Numbers> count_finds(const PrefillArguments& arguments, const Numbers& lengths,
                                 long long tiles) {
  std::vector<Numbers> finds;
  for (const int length : lengths) {
    finds.emplace_back(static_cast<std::size_t>(num_row_tiles(length)), 0);
  }
  for (int tile = 0; tile < tiles; ++tile) {
    const PrefillWork work = work_of(arguments, tile);
    if (work.first_row >= 0 && work.first_row < work.num_rows) {
      const auto row_tile = static_cast<std::size_t>(work.first_row / config::block_m);
      finds.at(static_cast<std::size_t>(work.request)).at(row_tile) += 1;
    }
  }
  return finds;
}

std::vector<Numbers> all_once(const Numbers& lengths) {
  std::vector<Numbers> finds;
  for (const int length : lengths) {
    finds.emplace_back(static_cast<std::size_t>(num_row_tiles(length)), 1);
  }
  return finds;
}

Numbers draw_lengths(std::mt19937& random, int batch) {
  constexpr int edges[] = {0, 0, 0, 1, 2, 9, 10, 11, 31, 32, 33, 64, 100};
  Numbers lengths;
  for (int b = 0; b < batch; ++b) {
    lengths.push_back(edges[random() % std::size(edges)]);
  }
  return lengths;
}

Numbers offsets_of(const Numbers& lengths) {
  Numbers offsets = {0};
  for (const int length : lengths) {
    offsets.push_back(offsets.back() + length);
  }
  return offsets;
}

TEST_CASE("every row tile of ragged queries is found once, " ATTNJIT_CASE_NAME) {
  std::mt19937 random(11);
  for (const int batch : {1, 2, 3, 31, 32, 33, 100}) {
    for (int repetition = 0; repetition < 5; ++repetition) {
      const Numbers lengths = draw_lengths(random, batch);
      const Numbers offsets = offsets_of(lengths);
      PrefillArguments arguments = {};
      arguments.batch = batch;
      arguments.queries.offsets = offsets.data();
      const long long rows = static_cast<long long>(offsets.back()) * config::q_per_kv;
      const long long tiles = first_row_tile(rows, config::block_m, batch);
      CHECK(count_finds(arguments, lengths, tiles) == all_once(lengths));
    }
  }
}

// By a walk over the requests.
int last_request_up_to(const Numbers& offsets, int batch, int tile) {
  int last = 0;
  for (int b = 0; b < batch; ++b) {
    const long long row = static_cast<long long>(offsets[static_cast<std::size_t>(b)]);
    if (first_row_tile(row * config::q_per_kv, config::block_m, b) <= tile) {
      last = b;
    }
  }
  return last;
}

TEST_CASE("the request of a row tile is found among any number of them, " ATTNJIT_CASE_NAME) {
  std::mt19937 random(12);
  for (const int batch : {1023, 1024, 1025, 5000, 70000}) {
    const Numbers offsets = offsets_of(draw_lengths(random, batch));
    const int rows = offsets.back() * config::q_per_kv;
    const int tiles = static_cast<int>(first_row_tile(rows, config::block_m, batch));
    Numbers asked = {0, 1, tiles / 2, tiles - 2, tiles - 1};
    for (int i = 0; i < 20; ++i) {
      asked.push_back(static_cast<int>(random() % static_cast<unsigned>(tiles)));
    }
    for (const int tile : asked) {
      const auto found =
          host_warp::run_lanes([&] { return find_request(offsets.data(), batch, tile); });
      CHECK(found[0] == last_request_up_to(offsets, batch, tile));
      CHECK(std::count(found.begin(), found.end(), found[0]) == host_warp::num_lanes);
    }
  }
}

TEST_CASE("every row tile of dense queries is found once, " ATTNJIT_CASE_NAME) {
  constexpr int extent = 33;
  const Numbers lengths = {33, 0, 12, 32, 1};
  PrefillArguments arguments = {};
  arguments.batch = static_cast<int>(lengths.size());
  arguments.queries.extent = extent;
  const long long tiles = static_cast<long long>(num_row_tiles(extent)) * arguments.batch;
  CHECK(count_finds(arguments, Numbers(lengths.size(), extent), tiles) ==
        all_once(Numbers(lengths.size(), extent)));
  arguments.queries.lengths = lengths.data();
  CHECK(count_finds(arguments, lengths, tiles) == all_once(lengths));
}

TEST_CASE("lengths in device memory never reach past what they count in, " ATTNJIT_CASE_NAME) {
  const Numbers offsets = {5, 12, 12};
  const Numbers lengths = {100, -3};
  RequestTokens tokens = {offsets.data(), nullptr, 0};
  CHECK(tokens_of(tokens, 0).first == 5);
  CHECK(tokens_of(tokens, 0).count == 7);
  CHECK(tokens_of(tokens, 1).count == 0);
  tokens.lengths = lengths.data();
  CHECK(tokens_of(tokens, 0).count == 7);
  CHECK(tokens_of(tokens, 1).count <= 0);
  tokens = {nullptr, lengths.data(), 64};
  CHECK(tokens_of(tokens, 0).first == 0);
  CHECK(tokens_of(tokens, 0).count == 64);
}

TEST_CASE("the last query stands at the last key, unless positions are given, " ATTNJIT_CASE_NAME) {
  const Numbers keys = {40};
  const Numbers query_positions = {1000};
  const Numbers key_positions = {990};
  PrefillArguments arguments = {};
  arguments.batch = 1;
  arguments.queries.extent = 10;
  arguments.keys = {nullptr, keys.data(), 64};
  CHECK(work_of(arguments, 0).seqlen_q == 10);
  // Rope columns of no extent leave no key.
  CHECK(work_of(arguments, 0).seqlen_kv == (config::head_dim_rope > 0 ? 0 : 40));
  CHECK(work_of(arguments, 0).query_place == 30);
  arguments.key_positions = key_positions.data();
  CHECK(work_of(arguments, 0).query_place == 30);
  CHECK(work_of(arguments, 0).key_position == 990);
  arguments.query_positions = query_positions.data();
  CHECK(work_of(arguments, 0).query_place == 10);
}

// A dense cache of rope columns has as many.
TEST_CASE(
    "the last query stands at the last key of a sequence of known extent, " ATTNJIT_CASE_NAME) {
  const Numbers keys = {40};
  const Numbers key_positions = {990};
  PrefillArguments arguments = {};
  arguments.batch = 1;
  arguments.queries.extent = 10;
  arguments.keys = {nullptr, keys.data(), 64};
  arguments.key_positions = key_positions.data();
  arguments.rope_extent = 1100;
  CHECK(work_of(arguments, 0).query_place == 1100 - 10 - 990);
  CHECK(work_of(arguments, 0).seqlen_kv == 40);
}

// Where k's last columns are apart, k and v may have whole pages of rows: more than keys.
TEST_CASE("keys past the last query's are none where k has rope columns, " ATTNJIT_CASE_NAME) {
  constexpr bool has_rope = config::head_dim_rope > 0;
  const Numbers keys = {64};
  const Numbers cached = {27};
  const Numbers chunk = {16};
  const Numbers past_the_end = {48};
  const Numbers before_the_first = {-1};
  PrefillArguments arguments = {};
  arguments.batch = 1;
  arguments.queries.extent = 10;
  arguments.keys = {nullptr, keys.data(), 64};
  arguments.query_positions = cached.data();
  arguments.rope_extent = 128;
  CHECK(work_of(arguments, 0).query_place == 27);
  CHECK(work_of(arguments, 0).seqlen_kv == (has_rope ? 37 : 64));
  arguments.key_positions = chunk.data();
  CHECK(work_of(arguments, 0).query_place == 11);
  CHECK(work_of(arguments, 0).seqlen_kv == (has_rope ? 21 : 64));
  arguments.key_positions = past_the_end.data();
  CHECK(work_of(arguments, 0).seqlen_kv == (has_rope ? 0 : 64));
  arguments.key_positions = before_the_first.data();
  CHECK(work_of(arguments, 0).seqlen_kv == (has_rope ? 0 : 64));
  // Lengths that reach past the rope's tensor do not lead outside it.
  arguments.key_positions = chunk.data();
  arguments.rope_extent = 20;
  CHECK(work_of(arguments, 0).seqlen_kv == (has_rope ? 4 : 64));
}

TEST_CASE("rows are packed query-major, and lie where the strides say, " ATTNJIT_CASE_NAME) {
  PrefillWork work = {};
  work.request = 3;
  work.kv_head = 2;
  work.first_query = 100;
  const QueryStrides strides = {std::int64_t{1} << 40, 1000, 7};
  const int row = 4 * config::q_per_kv + config::q_per_kv - 1;
  CHECK(query_of(row) == 4);
  CHECK(head_of(work, row) == 3 * config::q_per_kv - 1);
  CHECK(row_offset(strides, work, row) ==
        3 * (std::int64_t{1} << 40) + 104 * 1000 + (3 * config::q_per_kv - 1) * 7);
}

}  // namespace
