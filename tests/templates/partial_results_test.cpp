// templates/device/partial_results.cuh under the host compiler: the lines of a tile hold each of
// its values once, in every order.
#define __device__
#define __forceinline__ inline
#include "device/partial_results.cuh"

#include <set>
#include <vector>

#include "catch.hpp"

namespace {

using Places = std::vector<std::vector<int>>;  // [row][column]: how often a lane holds it

template <PartialOrder order, int tile_rows>
Places count_places(int head_dim_v) {
  const int lines = lines_of_tile(tile_rows, head_dim_v);
  Places places(tile_rows, std::vector<int>(static_cast<std::size_t>(lines * 128 / tile_rows), 0));
  for (int line = 0; line < lines; ++line) {
    for (int lane = 0; lane < 32; ++lane) {
      const LinePlace place = place_in_line<order, tile_rows>(line, lane);
      for (int i = 0; i < 4; ++i) {
        const int row = place.row[row_of_value<order>(i)];
        const int column = place.column + column_of_value<order>(i);
        places.at(static_cast<std::size_t>(row)).at(static_cast<std::size_t>(column)) += 1;
      }
    }
  }
  return places;
}

Places all_once(int rows, int columns) {
  return {static_cast<std::size_t>(rows), std::vector<int>(static_cast<std::size_t>(columns), 1)};
}

TEST_CASE("the lines of a tile hold each of its values once") {
  CHECK(count_places<PartialOrder::rows, 1>(512) == all_once(1, 512));
  CHECK(count_places<PartialOrder::rows, 1>(80) == all_once(1, 128));  // padded
  CHECK(count_places<PartialOrder::accumulators, 64>(512) == all_once(64, 512));
  CHECK(count_places<PartialOrder::accumulators, 64>(256) == all_once(64, 256));
  CHECK(count_places<PartialOrder::transposed, 8>(512) == all_once(8, 512));
  CHECK(count_places<PartialOrder::transposed, 16>(256) == all_once(16, 256));
}

template <PartialOrder order, int tile_rows>
bool rows_are_neighbours() {
  for (int line = 0; line < lines_of_tile(tile_rows, 512); ++line) {
    for (int lane = 0; lane < 32; ++lane) {
      const LinePlace place = place_in_line<order, tile_rows>(line, lane);
      const int first = state_place<order>(place.row[0]);
      if (first % 2 != 0 || state_place<order>(place.row[1]) != first + 1) {
        return false;
      }
    }
  }
  return true;
}

TEST_CASE("the states of a lane's two rows are neighbours, and every row of a tile has its own") {
  CHECK(rows_are_neighbours<PartialOrder::accumulators, 64>());
  CHECK(rows_are_neighbours<PartialOrder::transposed, 16>());
  std::set<int> places;
  for (int row = 0; row < 64; ++row) {
    places.insert(state_place<PartialOrder::accumulators>(row));
  }
  CHECK(places.size() == 64);
  CHECK(*places.rbegin() == 63);
}

template <PartialOrder order, int tile_rows>
bool steps_keep_rows(int first_line, int lane) {
  const LinePlace first = place_in_line<order, tile_rows>(first_line, lane);
  for (int i = 1; i < 4; ++i) {
    const LinePlace place =
        place_in_line<order, tile_rows>(first_line + i * line_step<order>, lane);
    if (place.row[0] != first.row[0] || place.row[1] != first.row[1] ||
        place.column != first.column + i * column_step<order>) {
      return false;
    }
  }
  return true;
}

TEST_CASE("four lines a step apart hold further columns of the same rows") {
  for (int lane = 0; lane < 32; ++lane) {
    CHECK(steps_keep_rows<PartialOrder::rows, 1>(0, lane));
    CHECK(steps_keep_rows<PartialOrder::accumulators, 64>(3, lane));
    CHECK(steps_keep_rows<PartialOrder::accumulators, 64>(16, lane));
    CHECK(steps_keep_rows<PartialOrder::transposed, 16>(4, lane));
  }
}

}  // namespace
