#include "attnjit/user_expression.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "attnjit/shown_text.hpp"
#include "text_place.hpp"

namespace attnjit {
namespace {

struct OpenBracket {
  char bracket;
  std::size_t position;
};

char opening_of(char closing) {
  switch (closing) {
    case ')':
      return '(';
    case ']':
      return '[';
    case '}':
      return '{';
    default:
      return '\0';
  }
}

// Characters that some compiler takes for a bracket, a '#' or a backslash.
constexpr std::array<std::string_view, 6> disguised = {"<%", "%>", "<:", ":>", "%:", "??"};

// Goes over an expression once, from left to right.
class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  // What is wrong and where, "" if nothing is.
  std::string find_fault() {
    const std::string fault = find_first();
    return fault.empty() ? "" : fmt::format("{}: {}", place_in(text_, position_), fault);
  }

 private:
  enum class Comment { none, line, block };

  // Leaves `position_` where it is.
  std::string find_first() {
    for (; position_ < text_.size(); ++position_) {
      std::string fault = is_in_comment() ? pass_comment() : pass_code();
      if (!fault.empty()) {
        return fault;
      }
    }
    if (comment_ == Comment::block) {
      position_ = comment_begin_;
      return "the comment does not end";
    }
    if (!open_.empty()) {
      position_ = open_.back().position;
      return fmt::format("'{}' is not closed", open_.back().bracket);
    }
    return has_code_ ? "" : "there is no expression";
  }

  bool is_in_comment() const { return comment_ != Comment::none; }

  bool starts(std::string_view token) const { return text_.substr(position_).starts_with(token); }

  // Where a line ends in one, the next would be taken for its rest, even in a comment.
  std::string find_bad_character() const {
    const char character = text_[position_];
    if (character == '\\') {
      return "a backslash may not be used";
    }
    const bool is_printable = character >= ' ' && character <= '~';
    return is_printable || character == '\n' || character == '\t'
               ? ""
               : fmt::format("the character {} may not be used",
                             shown_text(std::string_view(&character, 1)));
  }

  std::string pass_comment() {
    if (comment_ == Comment::line && text_[position_] == '\n') {
      comment_ = Comment::none;
    } else if (comment_ == Comment::block && starts("*/")) {
      comment_ = Comment::none;
      ++position_;
    } else {
      return starts("??") ? "\"??\" may not be used" : find_bad_character();
    }
    return "";
  }

  bool begin_comment() {
    if (!starts("//") && !starts("/*")) {
      return false;
    }
    comment_ = starts("//") ? Comment::line : Comment::block;
    comment_begin_ = position_++;
    return true;
  }

  std::string pass_code() {
    if (begin_comment()) {
      return "";
    }
    for (const std::string_view token : disguised) {
      if (starts(token)) {
        return fmt::format("\"{}\" may not be used", token);
      }
    }
    const char character = text_[position_];
    has_code_ = has_code_ || (character != ' ' && character != '\n' && character != '\t');
    switch (character) {
      case '#':
        return "a preprocessor line may not be used";
      case '"':
      case '\'':
        return "a quote may not be used";
      case '(':
      case '[':
      case '{':
        open_.push_back({character, position_});
        return "";
      case ')':
      case ']':
      case '}':
        return close(character);
      case ',':
        return open_.empty() ? "',' may stand inside of brackets only" : "";
      case ';':
        return is_in_braces() ? "" : "';' may stand inside of a lambda's braces only";
      default:
        return find_bad_character();
    }
  }

  bool is_in_braces() const {
    return std::any_of(open_.begin(), open_.end(),
                       [](const OpenBracket& each) { return each.bracket == '{'; });
  }

  std::string close(char bracket) {
    if (open_.empty()) {
      return fmt::format("'{}' closes nothing", bracket);
    }
    const OpenBracket opened = open_.back();
    if (opened.bracket != opening_of(bracket)) {
      return fmt::format("'{}' may not close the '{}' of {}", bracket, opened.bracket,
                         place_in(text_, opened.position));
    }
    open_.pop_back();
    return "";
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::vector<OpenBracket> open_;
  Comment comment_ = Comment::none;
  std::size_t comment_begin_ = 0;
  bool has_code_ = false;
};

}  // namespace

std::string find_expression_fault(std::string_view text) {
  if (text.size() > most_expression_characters) {
    return fmt::format("has more than {} characters", most_expression_characters);
  }
  return Scan(text).find_fault();
}

}  // namespace attnjit
