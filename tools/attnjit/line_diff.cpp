#include "line_diff.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace attnjit {
namespace {

using Lines = std::vector<std::string_view>;

constexpr int most_edits = 4000;  // the search remembers half the square of them
constexpr std::size_t context_lines = 3;

Lines split_lines(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    lines.push_back(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  return lines;
}

// A line that both have, or one of them alone.
struct Edit {
  char kind;  // ' ', '-' or '+'
  std::string_view line;
};

// How far along each diagonal so many edits reach: Myers, "An O(ND) Difference Algorithm and Its
// Variations" (1986). trace[d] holds diagonals -d to d.
using Trace = std::vector<std::vector<int>>;

int reach_before(const std::vector<int>& before, int edits, int diagonal) {
  const auto at = [&](int d) { return before[static_cast<std::size_t>(d + edits - 1)]; };
  if (diagonal == -edits || (diagonal != edits && at(diagonal - 1) < at(diagonal + 1))) {
    return at(diagonal + 1);  // a line of the right is put in
  }
  return at(diagonal - 1) + 1;  // a line of the left is taken out
}

// Empty if more than most_edits would be needed.
Trace search(const Lines& left, const Lines& right) {
  const int n = static_cast<int>(left.size());
  const int m = static_cast<int>(right.size());
  Trace trace;
  for (int edits = 0; edits <= std::min(n + m, most_edits); ++edits) {
    std::vector<int> reach(2 * static_cast<std::size_t>(edits) + 1, 0);
    for (int diagonal = -edits; diagonal <= edits; diagonal += 2) {
      int x = edits == 0 ? 0 : reach_before(trace.back(), edits, diagonal);
      while (x < n && x - diagonal < m && x - diagonal >= 0 &&
             left[static_cast<std::size_t>(x)] == right[static_cast<std::size_t>(x - diagonal)]) {
        ++x;
      }
      const int place = diagonal + edits;
      reach[static_cast<std::size_t>(place)] = x;
      if (x >= n && x - diagonal >= m) {
        trace.push_back(std::move(reach));
        return trace;
      }
    }
    trace.push_back(std::move(reach));
  }
  return {};
}

std::vector<Edit> trace_back(const Lines& left, const Lines& right, const Trace& trace) {
  std::vector<Edit> edits;
  int x = static_cast<int>(left.size());
  int y = static_cast<int>(right.size());
  for (int count = static_cast<int>(trace.size()) - 1; count >= 0; --count) {
    const int diagonal = x - y;
    int start_x = 0;  // where the run of equal lines on this diagonal begins
    if (count > 0) {
      start_x = reach_before(trace[static_cast<std::size_t>(count - 1)], count, diagonal);
    }
    while (x > start_x) {
      --x;
      --y;
      edits.push_back({' ', left[static_cast<std::size_t>(x)]});
    }
    if (count > 0) {
      const std::vector<int>& before = trace[static_cast<std::size_t>(count - 1)];
      const auto at = [&](int d) { return before[static_cast<std::size_t>(d + count - 1)]; };
      const bool is_insertion =
          diagonal == -count || (diagonal != count && at(diagonal - 1) < at(diagonal + 1));
      if (is_insertion) {
        edits.push_back({'+', right[static_cast<std::size_t>(--y)]});
      } else {
        edits.push_back({'-', left[static_cast<std::size_t>(--x)]});
      }
    }
  }
  std::reverse(edits.begin(), edits.end());
  return edits;
}

std::vector<Edit> compare(Lines left, Lines right) {
  std::vector<Edit> head;
  std::vector<Edit> tail;
  while (!left.empty() && !right.empty() && left.back() == right.back()) {
    tail.push_back({' ', left.back()});
    left.pop_back();
    right.pop_back();
  }
  const auto first = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  for (auto line = left.begin(); line != first.first; ++line) {
    head.push_back({' ', *line});
  }
  left.erase(left.begin(), first.first);
  right.erase(right.begin(), first.second);
  const Trace trace = search(left, right);
  std::vector<Edit> middle;
  if (trace.empty()) {
    for (const std::string_view line : left) {
      middle.push_back({'-', line});
    }
    for (const std::string_view line : right) {
      middle.push_back({'+', line});
    }
  } else {
    middle = trace_back(left, right, trace);
  }
  head.insert(head.end(), middle.begin(), middle.end());
  head.insert(head.end(), tail.rbegin(), tail.rend());
  return head;
}

std::string range(std::size_t first, std::size_t count) {
  return count == 1 ? fmt::format("{}", first + 1)
                    : fmt::format("{},{}", count == 0 ? first : first + 1, count);
}

void append_line(std::string& text, const Edit& edit) {
  text += edit.kind;
  text += edit.line;
  text += edit.line.ends_with('\n') ? "" : "\n\\ No newline at end of file\n";
}

// Edits [begin, end), whose first lines are `left` and `right`.
std::string format_hunk(const std::vector<Edit>& edits, std::size_t begin, std::size_t end,
                        std::size_t left, std::size_t right) {
  std::size_t left_lines = 0;
  std::size_t right_lines = 0;
  std::string body;
  for (std::size_t i = begin; i < end; ++i) {
    left_lines += edits[i].kind == '+' ? 0 : 1;
    right_lines += edits[i].kind == '-' ? 0 : 1;
    append_line(body, edits[i]);
  }
  return fmt::format("@@ -{} +{} @@\n{}", range(left, left_lines), range(right, right_lines), body);
}

// The end of the hunk whose first change is `change`: changes up to twice the context apart share
// one.
std::size_t end_of_hunk(const std::vector<Edit>& edits, std::size_t change) {
  std::size_t last = change;
  for (std::size_t i = change; i < edits.size() && i <= last + 2 * context_lines + 1; ++i) {
    last = edits[i].kind == ' ' ? last : i;
  }
  return std::min(last + context_lines + 1, edits.size());
}

}  // namespace

std::string unified_diff(std::string_view left_name, std::string_view left,
                         std::string_view right_name, std::string_view right) {
  const std::vector<Edit> edits = compare(split_lines(left), split_lines(right));
  std::string hunks;
  std::size_t left_line = 0;
  std::size_t right_line = 0;
  std::size_t next = 0;
  const auto pass = [&](std::size_t end) {
    for (; next < end; ++next) {
      left_line += edits[next].kind == '+' ? 0 : 1;
      right_line += edits[next].kind == '-' ? 0 : 1;
    }
  };
  for (;;) {
    std::size_t change = next;
    while (change < edits.size() && edits[change].kind == ' ') {
      ++change;
    }
    if (change == edits.size()) {
      break;
    }
    pass(std::max(next, change - std::min(change, context_lines)));
    const std::size_t end = end_of_hunk(edits, change);
    hunks += format_hunk(edits, next, end, left_line, right_line);
    pass(end);
  }
  return hunks.empty() ? "" : fmt::format("--- {}\n+++ {}\n{}", left_name, right_name, hunks);
}

}  // namespace attnjit
