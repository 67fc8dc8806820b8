#include "custom_expressions.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace attnjit::check {
namespace {

template <std::size_t size>
int place_of(std::string_view expression, const std::array<std::string_view, size>& known) {
  const auto found = std::find(known.begin(), known.end(), expression);
  if (found == known.end()) {
    throw std::invalid_argument("the reference does not know the expression " +
                                std::string(expression));
  }
  return static_cast<int>(found - known.begin());
}

}  // namespace

const std::array<std::string_view, 3> custom_mask_expressions = {
    "q >= k && (q - k) % 3 != 1",
    "(b + h + k) % 2 == 0 || q == k  // a checkerboard, and every query its own key",
    "[&] {\n"
    "  const int middle = seqlen_kv / 2;\n"
    "  return k < middle ? q >= seqlen_q / 3 : k - q <= 40;\n"
    "}()"};

const std::array<std::string_view, 3> custom_score_expressions = {
    "score - 0.125f * (k % 5) + (h == 1 ? 0.5f : 0.0f)",
    "3.0f * score / (1.0f + fabsf(score)) - 0.0625f * b", "k > q ? score - 1.5f : 1.25f * score"};

CustomMask custom_mask_of(std::string_view expression) {
  return static_cast<CustomMask>(place_of(expression, custom_mask_expressions));
}

CustomScore custom_score_of(std::string_view expression) {
  return static_cast<CustomScore>(place_of(expression, custom_score_expressions));
}

bool shows(CustomMask mask, const CustomPair& pair) {
  switch (mask) {
    case custom_mask_dilated:
      return pair.key <= pair.query && (pair.query - pair.key) % 3 != 1;
    case custom_mask_checkered:
      return pair.key == pair.query || (pair.key + pair.head + pair.request) % 2 == 0;
    case custom_mask_by_lengths:
      return pair.key < pair.seqlen_kv / 2 ? pair.query >= pair.seqlen_q / 3
                                           : pair.key <= pair.query + 40;
  }
  return false;
}

}  // namespace attnjit::check
