#include "attnjit/mask_formula.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"

namespace {

using namespace attnjit;

std::string canonical(std::string_view text) {
  return to_string(parse_mask_formula(text));
}

std::string refusal(std::string_view text) {
  try {
    parse_mask_formula(text);
  } catch (const MaskFormulaError& error) {
    return error.what();
  }
  return "";
}

// Whether `shown`, the masks that show a key, come to showing it.
bool shows(const MaskFormula& formula, MaskSet shown) {
  bool any = false;
  for (const MaskSet clause : formula.clauses) {
    any = any || (clause & shown) == clause;
  }
  return any;
}

TEST_CASE("a formula shows what and and or of its masks show") {
  const auto has = [](MaskSet shown, MaskKind kind) { return (shown & mask_bit(kind)) != 0; };
  using enum MaskKind;
  const std::vector<std::pair<std::string, std::function<bool(MaskSet)>>> formulas = {
      {"causal", [&](MaskSet s) { return has(s, causal); }},
      {"causal and document", [&](MaskSet s) { return has(s, causal) && has(s, document); }},
      {"sliding_window or prefix_lm",
       [&](MaskSet s) { return has(s, sliding_window) || has(s, prefix_lm); }},
      {"causal and (sliding_window or prefix_lm)",
       [&](MaskSet s) { return has(s, causal) && (has(s, sliding_window) || has(s, prefix_lm)); }},
      {"causal and document or custom",
       [&](MaskSet s) { return (has(s, causal) && has(s, document)) || has(s, custom); }},
      {"custom or causal and document or tree and custom",
       [&](MaskSet s) { return (has(s, causal) && has(s, document)) || has(s, custom); }},
      {"((causal or document) and (document or (tree and causal))) and (tree or custom)",
       [&](MaskSet s) {
         return (has(s, causal) || has(s, document)) &&
                (has(s, document) || (has(s, tree) && has(s, causal))) &&
                (has(s, tree) || has(s, custom));
       }},
  };
  for (const auto& [text, expected] : formulas) {
    const MaskFormula formula = parse_mask_formula(text);
    int wrong = 0;
    for (MaskSet shown = 0; shown < mask_bit(composed); ++shown) {
      wrong += shows(formula, shown) != expected(shown) ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(parse_mask_formula(to_string(formula)) == formula);
  }
}

TEST_CASE("formulas of one meaning are one formula") {
  CHECK(canonical("document and causal") == "causal and document");
  CHECK(canonical("causal  and\n(document)") == "causal and document");
  CHECK(canonical("causal and causal or causal") == "causal");
  CHECK(canonical("causal or causal and document") == "causal");
  CHECK(canonical("(causal or tree) and (causal or document)") == "causal or document and tree");
  CHECK(canonical("tree and document or causal") == canonical("causal or document and tree"));
}

TEST_CASE("what cannot be read is refused with its place") {
  CHECK(refusal("") == "1:1: a mask is missing at the end");
  CHECK(refusal("causal and") == "1:11: a mask is missing at the end");
  CHECK(refusal("causal document") == "1:8: \"document\" must be \"and\" or \"or\"");
  CHECK(refusal("causal and\nor tree") == "2:1: \"or\" is no mask that can be joined");
  CHECK(refusal("causal & tree") == "1:8: \"&\" must be \"and\" or \"or\"");
  CHECK(refusal("(causal") == "1:8: \")\" is missing at the end");
  CHECK(refusal("(causal tree)") == "1:9: \"tree\" must be \")\"");
  CHECK(refusal("causal)") == "1:7: \")\" must be \"and\" or \"or\"");
  CHECK(refusal("()") == "1:2: \")\" is no mask that can be joined");
  CHECK(refusal("not causal") == "1:1: \"not\" is no mask that can be joined");
  CHECK(refusal("Causal") == "1:1: \"Causal\" is no mask that can be joined");
  CHECK(refusal("none or causal") == "1:1: \"none\" is no mask that can be joined");
  CHECK(refusal("causal and composed") == "1:12: \"composed\" is no mask that can be joined");
  CHECK(refusal("causal\xff").starts_with("1:7: \"\\xff\" must be"));
  CHECK(refusal(std::string(1'000'000, '(')) == "has more than 1000 characters");
  CHECK(refusal(std::string(500, '(')) == "1:17: parentheses are nested more than 16 deep");
}

TEST_CASE("a descriptor has the masks that it is composed of, or the one it names") {
  AttentionDescriptor descriptor;
  CHECK(has_mask(descriptor, MaskKind::causal));
  CHECK(!has_mask(descriptor, MaskKind::document));
  descriptor.mask = MaskKind::composed;
  CHECK(mask_formula_of(descriptor).clauses.empty());
  descriptor.mask_formula = "tree and document or document";
  CHECK(has_mask(descriptor, MaskKind::document));
  CHECK(!has_mask(descriptor, MaskKind::tree));  // it could show nothing more
  CHECK(!has_mask(descriptor, MaskKind::composed));
  descriptor.mask = static_cast<MaskKind>(99);
  CHECK(!has_mask(descriptor, MaskKind::document));
}

}  // namespace
