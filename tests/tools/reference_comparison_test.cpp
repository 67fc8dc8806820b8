// What a comparison with the reference must show to pass: by hand.
#include "reference_comparison.hpp"

#include "catch.hpp"

namespace attnjit::check {
namespace {

Comparison good_comparison() {
  Comparison comparison = {};
  comparison.worst_excess = 0.9;
  comparison.worst_lse_excess = 0.9;
  comparison.dot = 10;
  comparison.squares = 20;
  comparison.compared = 130;
  return comparison;
}

bool passes(const Comparison& comparison, std::int64_t num_values) {
  return judge(comparison, num_values, Tolerance()).passed;
}

TEST_CASE("a comparison passes if every value that is owed was compared and is close") {
  CHECK(passes(good_comparison(), 130));
  CHECK(passes(Comparison{}, 0));
}

TEST_CASE("a comparison of nothing, or of less than is owed, does not pass") {
  CHECK_FALSE(passes(Comparison{}, 130));
  CHECK_FALSE(passes(good_comparison(), 131));
  CHECK(judge(Comparison{}, 130, Tolerance()).failure == "0 values were compared in place of 130");
}

TEST_CASE("a comparison with any error above its tolerance does not pass") {
  const auto spoilt = [](auto spoil) {
    Comparison comparison = good_comparison();
    spoil(comparison);
    return comparison;
  };
  CHECK_FALSE(passes(spoilt([](Comparison& c) { c.worst_excess = 1.1; }), 130));
  CHECK_FALSE(passes(spoilt([](Comparison& c) { c.worst_lse_excess = 1.1; }), 130));
  CHECK_FALSE(passes(spoilt([](Comparison& c) { c.mismatches = 1; }), 130));
  CHECK_FALSE(passes(spoilt([](Comparison& c) { c.dot = 9.99; }), 130));
}

}  // namespace
}  // namespace attnjit::check
