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

// Of one row group.
template <PartialOrder order>
Places count_places(int head_dim_v) {
  constexpr int rows = group_rows<order>;
  const int lines = lines_of_tile(rows, head_dim_v);
  Places places(rows, std::vector<int>(static_cast<std::size_t>(lines * line_columns<order>), 0));
  for (int line = 0; line < lines; ++line) {
    for (int lane = 0; lane < 32; ++lane) {
      const LinePlace place = place_in_line<order>(line, lane);
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

TEST_CASE("the lines of a row group hold each of its values once") {
  CHECK(count_places<PartialOrder::rows>(512) == all_once(1, 512));
  CHECK(count_places<PartialOrder::rows>(80) == all_once(1, 128));  // padded
  CHECK(count_places<PartialOrder::accumulators>(512) == all_once(16, 512));
  CHECK(count_places<PartialOrder::accumulators>(256) == all_once(16, 256));
  CHECK(count_places<PartialOrder::transposed>(512) == all_once(8, 512));
  CHECK(count_places<PartialOrder::transposed>(256) == all_once(8, 256));
}

template <PartialOrder order>
bool states_are_neighbours() {
  for (int lane = 0; lane < 32; ++lane) {
    const LinePlace place = place_in_line<order>(0, lane);
    const int first = state_place<order>(place.row[0]);
    if (first % 2 != 0 || state_place<order>(place.row[1]) != first + 1) {
      return false;
    }
  }
  return true;
}

template <PartialOrder order>
std::set<int> state_places() {
  std::set<int> places;
  for (int row = 0; row < group_rows<order>; ++row) {
    places.insert(state_place<order>(row));
  }
  return places;
}

TEST_CASE("the states of a lane's two rows are neighbours, and every row of a group has its own") {
  CHECK(states_are_neighbours<PartialOrder::accumulators>());
  CHECK(states_are_neighbours<PartialOrder::transposed>());
  CHECK(state_places<PartialOrder::accumulators>().size() == 16);
  CHECK(*state_places<PartialOrder::accumulators>().rbegin() == 15);
  CHECK(state_places<PartialOrder::transposed>().size() == 8);
  CHECK(*state_places<PartialOrder::transposed>().rbegin() == 7);
}

template <PartialOrder order>
bool lines_keep_rows(int lane) {
  const LinePlace first = place_in_line<order>(8, lane);
  for (int i = 1; i < 4; ++i) {
    const LinePlace place = place_in_line<order>(8 + i, lane);
    if (place.row[0] != first.row[0] || place.row[1] != first.row[1] ||
        place.column != first.column + i * line_columns<order>) {
      return false;
    }
  }
  return true;
}

TEST_CASE("lines that follow each other hold further columns of the same rows") {
  for (int lane = 0; lane < 32; ++lane) {
    CHECK(lines_keep_rows<PartialOrder::rows>(lane));
    CHECK(lines_keep_rows<PartialOrder::accumulators>(lane));
    CHECK(lines_keep_rows<PartialOrder::transposed>(lane));
  }
}

// The lanes of all ranks have the lane's rows, and there are no others.
template <PartialOrder order>
bool ranks_are_the_lanes_of_a_row(int lane) {
  const int row = place_in_line<order>(0, lane).row[0];
  std::set<int> by_rank;
  std::set<int> by_row;
  for (int rank = 0; rank < lanes_of_row<order>; ++rank) {
    const int other = lane_of_rank<order>(lane, rank);
    by_rank.insert(rank_in_row<order>(other) == rank ? other : -1);
  }
  for (int other = 0; other < 32; ++other) {
    if (place_in_line<order>(0, other).row[0] == row) {
      by_row.insert(other);
    }
  }
  return by_rank == by_row;
}

TEST_CASE("the lanes that have the same rows are ranked") {
  for (int lane = 0; lane < 32; ++lane) {
    CHECK(ranks_are_the_lanes_of_a_row<PartialOrder::rows>(lane));
    CHECK(ranks_are_the_lanes_of_a_row<PartialOrder::accumulators>(lane));
    CHECK(ranks_are_the_lanes_of_a_row<PartialOrder::transposed>(lane));
  }
}

}  // namespace
