// Masks joined by and and or: what mask_formula of a descriptor says, in one form for all formulas
// that mean the same. Stands beside the straight line: rules, config selection and argument checks
// ask it. Plain values and pure functions, thread-safe.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/attention_descriptor.hpp"

namespace attnjit {

// Masks, a bit for each: mask_bit(kind).
using MaskSet = unsigned;

constexpr MaskSet mask_bit(MaskKind kind) {
  return MaskSet{1} << static_cast<unsigned>(kind);
}

// A key is seen where all masks of any clause show it. Clauses are ascending, and none holds
// another, for which it would say nothing.
struct MaskFormula {
  std::vector<MaskSet> clauses;

  bool has(MaskKind kind) const;

  friend bool operator==(const MaskFormula&, const MaskFormula&) = default;
};

// Clauses that a kernel has room for.
constexpr std::size_t most_mask_clauses = 8;

// What of a formula cannot be read, and where: "1:8: …", by line and column.
class MaskFormulaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reads names of masks joined by "and", "or" and parentheses; "and" binds closer. Every mask but
// none and composed may be named. Throws MaskFormulaError.
MaskFormula parse_mask_formula(std::string_view text);

// "causal and document or prefix_lm": parse_mask_formula gives the same formula back.
std::string to_string(const MaskFormula& formula);

// The masks of a descriptor: those of its formula if it is composed, else the one that it names.
// Without a clause where the formula cannot be read.
MaskFormula mask_formula_of(const AttentionDescriptor& descriptor);

// Whether `kind` is the descriptor's mask, or one of those that it is composed of.
bool has_mask(const AttentionDescriptor& descriptor, MaskKind kind);

}  // namespace attnjit
