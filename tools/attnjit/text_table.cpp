#include "text_table.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace attnjit {
namespace {

// Characters on screen: UTF-8 continuation bytes add none.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

std::vector<std::size_t> column_widths(std::span<const TableColumn> columns,
                                       std::span<const std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (const TableColumn& column : columns) {
    widths.push_back(width_of(column.title));
  }
  for (const std::vector<std::string>& row : rows) {
    if (row.size() != columns.size()) {
      throw std::invalid_argument(
          fmt::format("a row of {} cells in a table of {} columns", row.size(), columns.size()));
    }
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  }
  return widths;
}

void append_cell(std::string& line, std::string_view cell, std::size_t width, Alignment alignment) {
  const std::string padding(width - width_of(cell), ' ');
  line += alignment == Alignment::right ? padding : "";
  line += cell;
  line += alignment == Alignment::left ? padding : "";
}

}  // namespace

std::string format_table(std::span<const TableColumn> columns,
                         std::span<const std::vector<std::string>> rows) {
  const std::vector<std::size_t> widths = column_widths(columns, rows);
  std::string text;
  const auto append_line = [&](const auto& cell_at) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      line += i == 0 ? "" : "  ";
      append_cell(line, cell_at(i), widths[i], columns[i].alignment);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  append_line([&](std::size_t i) { return columns[i].title; });
  for (const std::vector<std::string>& row : rows) {
    append_line([&](std::size_t i) -> std::string_view { return row[i]; });
  }
  return text;
}

std::string count_of(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string format_ranges(std::span<const int> numbers) {
  std::string text;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) {
      ++end;
    }
    text += text.empty() ? "" : ", ";
    text += end - begin == 1 ? fmt::format("{}", numbers[begin])
                             : fmt::format("{}-{}", numbers[begin], numbers[end - 1]);
    begin = end;
  }
  return text;
}

}  // namespace attnjit
