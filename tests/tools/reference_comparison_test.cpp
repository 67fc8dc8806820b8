// What a comparison with the reference must show to pass: by hand.
#include "reference_comparison.hpp"

#include <cmath>

#include "catch.hpp"
#include "lse_tolerance.h"

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

// The tolerance of an LSE of a row whose scores have products of such magnitudes.
double tolerance_of(int head_dim, double lse, double magnitude) {
  const Tolerance tolerance;
  CompareArguments arguments = {};
  arguments.lse_absolute = tolerance.lse_absolute;
  arguments.lse_relative = tolerance.lse_relative;
  arguments.lse_rounding = Tolerance::score_rounding(head_dim);
  return lse_tolerance(arguments, lse, magnitude);
}

// Scores of N(0, 1) are sums of products that add up to about the root of the head dim.
TEST_CASE("an LSE may be off by what fp32 scores round, and by no more") {
  CHECK(tolerance_of(128, 0.0, 11.3) == Approx(1e-6 + 24 * 0x1p-24 * 11.3));
  CHECK(tolerance_of(576, 0.0, 24.0) == Approx(1e-6 + 52 * 0x1p-24 * 24.0));
  CHECK(tolerance_of(8, 0.0, 1.0) == Approx(1e-6 + 17 * 0x1p-24));
  CHECK(2 * 52 * 0x1p-24 * 24.0 > tolerance_of(576, 0.0, 24.0));
  CHECK(tolerance_of(576, 0.0, 0.0) == 1e-6);
}

TEST_CASE("an LSE that is not near 0 has the tolerance of its size, of either sign") {
  CHECK(tolerance_of(576, 9.0, 24.0) == Approx(1e-6 + 9.0 * 8.01 / 65536));
  CHECK(tolerance_of(576, -9.0, 24.0) == tolerance_of(576, 9.0, 24.0));
}

// One key of n, of a score that is nothing special, is 1 / n of the sum.
TEST_CASE("a key too many or too few is no rounding") {
  CHECK(std::log(64.0 / 63.0) > 100 * tolerance_of(576, 0.0, 24.0));
  CHECK(std::log(1000.0 / 999.0) > 10 * tolerance_of(576, 0.0, 24.0));
}

}  // namespace
}  // namespace attnjit::check
