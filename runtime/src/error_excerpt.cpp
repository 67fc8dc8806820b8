#include "error_excerpt.hpp"

#include "text_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace attnjit {
namespace {

constexpr int context_lines = 3;
constexpr std::size_t most_excerpts = 10;  // one mistake often brings dozens of errors

struct Location {
  std::string file;
  int line = 0;

  friend bool operator==(const Location&, const Location&) = default;
};

struct NumberedLine {
  Location location;
  std::string_view text;
};

// The location that a line `#line 12 "name"` gives to the next one.
std::optional<Location> parse_line_directive(std::string_view line, const std::string& file) {
  constexpr std::string_view directive = "#line ";
  if (!line.starts_with(directive)) {
    return std::nullopt;
  }
  Location next{.file = file, .line = 0};
  std::from_chars(line.data() + directive.size(), line.data() + line.size(), next.line);
  const std::size_t open = line.find('"');
  if (open != std::string_view::npos) {
    next.file = line.substr(open + 1, line.rfind('"') - open - 1);
  }
  return next;
}

void number_lines(const std::string& file, std::string_view text,
                  std::vector<NumberedLine>& numbered) {
  Location location{.file = file, .line = 1};
  for (const std::string_view line : split_lines(text)) {
    if (auto next = parse_line_directive(line, location.file)) {
      location = *next;
      continue;
    }
    numbered.push_back({location, line});
    ++location.line;
  }
}

// "device/x.cuh(12): error: …" of the front end; nullopt for every other line.
std::optional<Location> parse_error(std::string_view line) {
  const std::size_t mark = line.find("): error");
  const std::size_t open = mark != std::string_view::npos ? line.rfind('(', mark) : mark;
  if (open == std::string_view::npos) {
    return std::nullopt;
  }
  Location location{.file = std::string(line.substr(0, open)), .line = 0};
  const auto parsed = std::from_chars(line.data() + open + 1, line.data() + mark, location.line);
  return parsed.ptr == line.data() + mark ? std::optional(location) : std::nullopt;
}

std::string excerpt(const std::vector<NumberedLine>& numbered, const Location& error) {
  std::string text;
  for (const auto& [location, line] : numbered) {
    const int distance = location.line - error.line;
    if (location.file == error.file && distance >= -context_lines && distance <= context_lines) {
      text += fmt::format("{} {:5} | {}\n", distance == 0 ? '>' : ' ', location.line, line);
    }
  }
  return text.empty() ? text : fmt::format("{}:{}\n{}", error.file, error.line, text);
}

}  // namespace

std::string error_excerpts(const RenderedKernel& kernel, std::string_view program_name,
                           std::string_view log) {
  std::vector<NumberedLine> numbered;
  number_lines(std::string(program_name), kernel.source, numbered);
  for (const SourceFile& header : kernel.headers) {
    number_lines(header.name, header.text, numbered);
  }
  std::vector<Location> shown;
  std::string text;
  for (const std::string_view line : split_lines(log)) {
    const std::optional<Location> error = parse_error(line);
    if (!error || shown.size() == most_excerpts ||
        std::find(shown.begin(), shown.end(), *error) != shown.end()) {
      continue;
    }
    shown.push_back(*error);
    text += excerpt(numbered, *error);
  }
  return text;
}

}  // namespace attnjit
