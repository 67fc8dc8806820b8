#include "caps_table.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "text_table.hpp"

namespace attnjit {
namespace {

using Cells = std::vector<std::string>;

bool is_number(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "8 to 256, 512"; "-" where there is nothing.
std::string shown_values(const std::vector<ProbedValue>& values) {
  Cells shown;
  for (std::size_t begin = 0; begin < values.size();) {
    std::size_t end = begin + 1;
    while (end < values.size() && is_number(values[end].value) && is_number(values[begin].value) &&
           values[end].position == values[end - 1].position + 1) {
      ++end;
    }
    if (end - begin > 2) {
      shown.push_back(fmt::format("{} to {}", values[begin].value, values[end - 1].value));
    } else {
      for (std::size_t i = begin; i < end; ++i) {
        shown.push_back(values[i].value);
      }
    }
    begin = end;
  }
  return shown.empty() ? "-" : fmt::format("{}", fmt::join(shown, ", "));
}

std::string shown_targets(const std::vector<TargetDevice>& targets) {
  Cells shown;
  for (const TargetDevice& target : targets) {
    shown.push_back(fmt::format("{} ({})", target.name, target.arch));
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

// Axes on which all rows serve the same single value say nothing about a row.
bool is_alike(const SupportMatrix& matrix, std::size_t axis) {
  const auto cell = [&](const ServedRow& row) { return shown_values(row.axes[axis].values); };
  return std::all_of(matrix.rows.begin(), matrix.rows.end(), [&](const ServedRow& row) {
    return row.axes[axis].values.size() == 1 && cell(row) == cell(matrix.rows.front());
  });
}

// The other axes.
std::vector<std::size_t> telling_axes(const SupportMatrix& matrix) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; !matrix.rows.empty() && i < matrix.rows.front().axes.size(); ++i) {
    if (!is_alike(matrix, i)) {
      axes.push_back(i);
    }
  }
  return axes;
}

// "score_modifier none, sparsity none"; empty if there are no such axes.
std::string alike_values(const SupportMatrix& matrix) {
  Cells shown;
  for (std::size_t i = 0; !matrix.rows.empty() && i < matrix.rows.front().axes.size(); ++i) {
    if (is_alike(matrix, i)) {
      const ServedAxis& axis = matrix.rows.front().axes[i];
      shown.push_back(fmt::format("{} {}", axis.axis, shown_values(axis.values)));
    }
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

// What a refusal says, whichever operations it is about.
struct RefusalText {
  Cells operations;
  std::string field;
  Cells values;
  std::string rule;
  std::string fix;

  bool takes(const RefusalText& other) const {
    const bool is_about_operation = field == "operation";  // its values are the operations
    return field == other.field && rule == other.rule && fix == other.fix &&
           (is_about_operation || values == other.values);
  }
};

std::vector<RefusalText> refusal_texts(const SupportMatrix& matrix) {
  std::vector<RefusalText> texts;
  for (const Refusal& refusal : matrix.refusals) {
    RefusalText text{
        {std::string(to_string(refusal.operation))}, refusal.field, {}, refusal.rule, refusal.fix};
    for (const ProbedValue& each : refusal.values) {
      text.values.push_back(each.value);
    }
    const auto found = std::find_if(texts.begin(), texts.end(),
                                    [&](const RefusalText& each) { return each.takes(text); });
    if (found == texts.end()) {
      texts.push_back(text);
      continue;
    }
    found->operations.push_back(text.operations.front());
    if (found->values != text.values) {
      found->values.insert(found->values.end(), text.values.begin(), text.values.end());
    }
  }
  return texts;
}

std::vector<Cells> refusal_rows(const SupportMatrix& matrix) {
  std::vector<Cells> rows;
  for (const RefusalText& text : refusal_texts(matrix)) {
    const std::string operations = fmt::format("{}", fmt::join(text.operations, ", "));
    rows.push_back({text.field, fmt::format("{}", fmt::join(text.values, ", ")),
                    text.values == text.operations ? "-" : operations, text.rule, text.fix});
  }
  return rows;
}

std::string markdown_row(const Cells& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string markdown_head(const Cells& titles) {
  return markdown_row(titles) + "|" +
         fmt::format("{}", fmt::join(Cells(titles.size(), "---"), "|")) + "|\n";
}

std::string quoted(std::string_view code) {
  return fmt::format("`{}`", code);
}

std::string served_markdown(const SupportMatrix& matrix) {
  const std::vector<std::size_t> axes = telling_axes(matrix);
  Cells titles = {"operation", "kernel", "on"};
  for (const std::size_t axis : axes) {
    titles.push_back(matrix.rows.front().axes[axis].axis);
  }
  std::string text = markdown_head(titles);
  for (const ServedRow& row : matrix.rows) {
    Cells cells = {quoted(to_string(row.operation)), quoted(row.kernel),
                   shown_targets(row.targets)};
    for (const std::size_t axis : axes) {
      cells.push_back(shown_values(row.axes[axis].values));
    }
    text += markdown_row(cells);
  }
  return text;
}

}  // namespace

std::string format_text(const SupportMatrix& matrix) {
  std::string text;
  for (const ServedRow& row : matrix.rows) {
    text += fmt::format("{} by {} on {}\n", to_string(row.operation), row.kernel,
                        shown_targets(row.targets));
    for (const std::size_t axis : telling_axes(matrix)) {
      text +=
          fmt::format("    {:<15} {}\n", row.axes[axis].axis, shown_values(row.axes[axis].values));
    }
    text += "\n";
  }
  const std::string alike = alike_values(matrix);
  text += alike.empty() ? "" : fmt::format("all of them: {}\n\n", alike);
  constexpr std::array<TableColumn, 5> columns = {
      {{"field"}, {"refused"}, {"of"}, {"rule"}, {"fix"}}};
  return text + format_table(columns, refusal_rows(matrix));
}

std::string format_markdown(const SupportMatrix& matrix) {
  std::string text = fmt::format(
      "Asked of the rules and of the config selection, for {}. A row lists the values with which "
      "its "
      "kernel is taken,\neach in some call. Dtypes, `kv_layout` and `mask` of a row combine "
      "freely, "
      "perhaps by the kernel of another row, unless a refusal says\notherwise. `head_dim` goes in "
      "steps of 8.\n\n",
      shown_targets(matrix.targets));
  text += served_markdown(matrix);
  const std::string alike = alike_values(matrix);
  text += alike.empty() ? "" : fmt::format("\nAll of them: {}.\n", alike);
  text += "\nLegal and refused, with the field's name, before anything is compiled:\n\n";
  text += markdown_head({"field", "refused", "of", "message", "fix"});
  for (Cells& row : refusal_rows(matrix)) {
    row[0] = quoted(row[0]);
    text += markdown_row(row);
  }
  return text;
}

}  // namespace attnjit
