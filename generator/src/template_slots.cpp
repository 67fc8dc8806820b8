#include "template_slots.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/template_library.hpp"

namespace attnjit {
namespace {

constexpr std::string_view opening = "// slot ";
constexpr std::string_view closing = "// end slot";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// One file on its way through.
class SlotFiller {
 public:
  SlotFiller(std::string_view path, std::string_view text, const SlotExpressions& expressions,
             SlotExpressions& unused)
      : path_(path), lines_(lines_of(text)), expressions_(expressions), unused_(unused) {}

  std::string fill() {
    for (; line_ < lines_.size(); ++line_) {
      if (lines_[line_].starts_with(closing)) {
        refuse(line_, "ends a slot where none is open", "remove it");
      }
      if (lines_[line_].starts_with(opening)) {
        fill_slot();
      } else {
        keep(line_);
      }
    }
    return text_;
  }

 private:
  // From the opening line to the closing one, where `line_` then is.
  void fill_slot() {
    const std::size_t first = line_;
    const std::string_view name = lines_[first].substr(opening.size());
    const std::string& expression = expression_of(name);
    const std::size_t end = end_of_slot(first, name);
    if (expression.empty()) {
      for (; line_ < end; ++line_) {
        keep(line_);
      }
    } else {
      write_function(first, end, name, expression);
    }
    keep(end);
    line_ = end;
  }

  const std::string& expression_of(std::string_view name) {
    const auto found = expressions_.find(name);
    if (found == expressions_.end()) {
      std::vector<std::string_view> names;
      for (const auto& [known, expression] : expressions_) {
        names.push_back(known);
      }
      refuse(line_, fmt::format("slot {} is unknown", name),
             fmt::format("use one of {}", fmt::join(names, ", ")));
    }
    const auto unused = unused_.find(name);
    if (unused == unused_.end()) {
      refuse(line_, fmt::format("slot {} is there already", name),
             "leave one of the two, for a kernel has one function of the name");
    }
    unused_.erase(unused);
    return found->second;
  }

  std::size_t end_of_slot(std::size_t first, std::string_view name) const {
    for (std::size_t i = first + 1; i < lines_.size(); ++i) {
      if (lines_[i].starts_with(opening)) {
        refuse(i, fmt::format("a slot may not lie in slot {}", name),
               fmt::format("end that one first: \"{}\"", closing));
      }
      if (lines_[i].starts_with(closing)) {
        return i;
      }
    }
    refuse(first, fmt::format("slot {} is not closed", name),
           fmt::format("end its code with a line \"{}\"", closing));
  }

  // The expression in place of the body of the slot's function.
  void write_function(std::size_t first, std::size_t end, std::string_view name,
                      const std::string& expression) {
    const auto is_head_end = [](std::string_view line) { return line.ends_with('{'); };
    const auto begin = lines_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto last = lines_.begin() + static_cast<std::ptrdiff_t>(end);
    const auto head_end = std::find_if(begin, last, is_head_end);
    if (head_end == last || *(last - 1) != "}") {
      refuse(first, fmt::format("slot {} holds no function", name),
             "let its head end with \"{\" and its body with a line \"}\"");
    }
    for (auto line = begin; line <= head_end; ++line) {
      keep(static_cast<std::size_t>(line - lines_.begin()));
    }
    // The line of the closing brace, counted from 1, is `end`.
    // What is wrong with the whole expression is told where `return` stands.
    text_ += fmt::format("#line 1 \"<slot {}>\"\nreturn ({}\n#line {} \"{}\"\n);\n}}\n", name,
                         expression, end, path_);
    text_ += fmt::format("#line {} \"{}\"\n", end + 1, path_);
  }

  void keep(std::size_t line) {
    text_ += lines_[line];
    text_ += '\n';
  }

  [[noreturn]] void refuse(std::size_t line, const std::string& fault,
                           const std::string& fix) const {
    throw TemplateError(fmt::format("{}:{}: {}; fix: {}", path_, line + 1, fault, fix));
  }

  std::string_view path_;
  std::vector<std::string_view> lines_;
  const SlotExpressions& expressions_;
  SlotExpressions& unused_;
  std::size_t line_ = 0;  // from 0
  std::string text_;
};

}  // namespace

std::string fill_slots(std::string_view path, std::string_view text,
                       const SlotExpressions& expressions, SlotExpressions& unused) {
  // Nothing changes in a file without slots, not even a last line that does not end.
  if (text.find("// slot ") == std::string_view::npos &&
      text.find(closing) == std::string_view::npos) {
    return std::string(text);
  }
  return SlotFiller(path, text, expressions, unused).fill();
}

}  // namespace attnjit
