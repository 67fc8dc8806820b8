#include "attnjit/mask_formula.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/shown_text.hpp"
#include "enum_names.hpp"
#include "text_place.hpp"

namespace attnjit {
namespace {

constexpr std::size_t most_characters = 1000;
constexpr int deepest_nesting = 16;

bool is_within(MaskSet inner, MaskSet outer) {
  return (inner & outer) == inner;
}

// Leaves out every clause that holds another: where it shows a key, the other does too.
MaskFormula simplified(std::vector<MaskSet> clauses) {
  std::sort(clauses.begin(), clauses.end());
  clauses.erase(std::unique(clauses.begin(), clauses.end()), clauses.end());
  MaskFormula formula;
  for (const MaskSet clause : clauses) {
    const bool holds_another = std::any_of(clauses.begin(), clauses.end(), [&](MaskSet other) {
      return other != clause && is_within(other, clause);
    });
    if (!holds_another) {
      formula.clauses.push_back(clause);
    }
  }
  return formula;
}

MaskFormula either(const MaskFormula& left, const MaskFormula& right) {
  std::vector<MaskSet> clauses = left.clauses;
  clauses.insert(clauses.end(), right.clauses.begin(), right.clauses.end());
  return simplified(std::move(clauses));
}

MaskFormula both(const MaskFormula& left, const MaskFormula& right) {
  std::vector<MaskSet> clauses;
  for (const MaskSet one : left.clauses) {
    for (const MaskSet other : right.clauses) {
      clauses.push_back(one | other);
    }
  }
  return simplified(std::move(clauses));
}

bool is_space(char character) {
  return character == ' ' || character == '\t' || character == '\n';
}

bool is_letter(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9') || character == '_';
}

// Goes over a formula once, from left to right.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) { advance(); }

  MaskFormula parse() {
    MaskFormula formula = parse_alternatives();
    if (!word_.empty()) {
      refuse(fmt::format("\"{}\" must be \"and\" or \"or\"", shown_text(word_)));
    }
    return formula;
  }

 private:
  MaskFormula parse_alternatives() {
    MaskFormula formula = parse_conjunction();
    while (word_ == "or") {
      advance();
      formula = either(formula, parse_conjunction());
    }
    return formula;
  }

  MaskFormula parse_conjunction() {
    MaskFormula formula = parse_term();
    while (word_ == "and") {
      advance();
      formula = both(formula, parse_term());
    }
    return formula;
  }

  MaskFormula parse_term() {
    if (word_ != "(") {
      return parse_name();
    }
    if (++depth_ > deepest_nesting) {
      refuse(fmt::format("parentheses are nested more than {} deep", deepest_nesting));
    }
    advance();
    MaskFormula formula = parse_alternatives();
    if (word_ != ")") {
      refuse(word_.empty() ? "\")\" is missing at the end"
                           : fmt::format("\"{}\" must be \")\"", shown_text(word_)));
    }
    --depth_;
    advance();
    return formula;
  }

  MaskFormula parse_name() {
    const auto kind = parse_enumerator<MaskKind>(std::string(word_));
    if (!kind || *kind == MaskKind::none || *kind == MaskKind::composed) {
      refuse(word_.empty()
                 ? "a mask is missing at the end"
                 : fmt::format("\"{}\" is no mask that can be joined", shown_text(word_)));
    }
    advance();
    return {{mask_bit(*kind)}};
  }

  void advance() {
    position_ += word_.size();
    while (position_ < text_.size() && is_space(text_[position_])) {
      ++position_;
    }
    std::size_t end = position_;
    while (end < text_.size() && is_letter(text_[end])) {
      ++end;
    }
    const bool is_sign = end == position_ && end < text_.size();
    word_ = text_.substr(position_, is_sign ? 1 : end - position_);
  }

  [[noreturn]] void refuse(const std::string& fault) const {
    throw MaskFormulaError(fmt::format("{}: {}", place_in(text_, position_), fault));
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::string_view word_;  // at `position_`; empty at the end
  int depth_ = 0;
};

}  // namespace

bool MaskFormula::has(MaskKind kind) const {
  return std::any_of(clauses.begin(), clauses.end(),
                     [&](MaskSet clause) { return (clause & mask_bit(kind)) != 0; });
}

MaskFormula parse_mask_formula(std::string_view text) {
  if (text.size() > most_characters) {
    throw MaskFormulaError(fmt::format("has more than {} characters", most_characters));
  }
  return Parser(text).parse();
}

std::string to_string(const MaskFormula& formula) {
  std::vector<std::string> clauses;
  for (const MaskSet clause : formula.clauses) {
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < enumerator_names<MaskKind>().size(); ++i) {
      const auto kind = static_cast<MaskKind>(i);
      if ((clause & mask_bit(kind)) != 0) {
        names.push_back(to_string(kind));
      }
    }
    clauses.push_back(fmt::format("{}", fmt::join(names, " and ")));
  }
  return fmt::format("{}", fmt::join(clauses, " or "));
}

MaskFormula mask_formula_of(const AttentionDescriptor& descriptor) {
  if (descriptor.mask != MaskKind::composed) {
    const bool is_kind = !to_string(descriptor.mask).empty();  // a cast makes others
    return is_kind ? MaskFormula{{mask_bit(descriptor.mask)}} : MaskFormula{};
  }
  try {
    return parse_mask_formula(descriptor.mask_formula);
  } catch (const MaskFormulaError&) {
    return {};
  }
}

bool has_mask(const AttentionDescriptor& descriptor, MaskKind kind) {
  return mask_formula_of(descriptor).has(kind);
}

}  // namespace attnjit
