#include "text_table.hpp"

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"

namespace attnjit {

TEST_CASE("columns of a table are as wide as their widest cell and lines end without blanks") {
  const std::array<TableColumn, 3> columns = {{{"name"}, {"bytes", Alignment::right}, {"note"}}};
  const std::vector<std::vector<std::string>> rows = {{"a", "5", ""}, {"longer", "123456", "x"}};
  CHECK(format_table(columns, rows) ==
        "name     bytes  note\n"
        "a            5\n"
        "longer  123456  x\n");
}

TEST_CASE("a character of several bytes takes one column of a table") {
  const std::array<TableColumn, 2> columns = {{{"a"}, {"b"}}};
  const std::vector<std::vector<std::string>> rows = {{"µs", "1"}};
  CHECK(format_table(columns, rows) == "a   b\nµs  1\n");
}

TEST_CASE("a row with a cell too few is refused") {
  const std::array<TableColumn, 2> columns = {{{"a"}, {"b"}}};
  const std::vector<std::vector<std::string>> rows = {{"1"}};
  CHECK_THROWS_AS(format_table(columns, rows), std::invalid_argument);
}

TEST_CASE("runs of numbers are shown as ranges") {
  CHECK(format_ranges(std::vector<int>{}).empty());
  CHECK(format_ranges(std::vector<int>{7}) == "7");
  CHECK(format_ranges(std::vector<int>{0, 1, 2, 5, 7, 8}) == "0-2, 5, 7-8");
}

TEST_CASE("a noun is plural unless there is one of it") {
  CHECK(count_of(0, "kernel") == "0 kernels");
  CHECK(count_of(1, "kernel") == "1 kernel");
  CHECK(count_of(7, "kernel") == "7 kernels");
}

}  // namespace attnjit
