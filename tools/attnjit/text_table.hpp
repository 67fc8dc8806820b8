// Rows of text -> aligned columns, for the tables that commands print. Pure; thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

enum class Alignment { left, right };

struct TableColumn {
  std::string_view title;
  Alignment alignment = Alignment::left;
};

// A title line and one line per row, columns two blanks apart, no blanks at a line's end. Each row
// has one cell per column; throws std::invalid_argument otherwise.
std::string format_table(std::span<const TableColumn> columns,
                         std::span<const std::vector<std::string>> rows);

// "1 kernel", "7 kernels".
std::string count_of(std::size_t count, std::string_view noun);

// Ascending numbers as ranges: "0-2, 5".
std::string format_ranges(std::span<const int> numbers);

}  // namespace attnjit
