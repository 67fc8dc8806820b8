// Calls with one thing wrong each, and that the checks name it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attnjit/argument_error.hpp"
#include "catch.hpp"

namespace attnjit::test {

template <typename Call>
struct BadCall {
  std::string field;
  std::string rule;  // part of it
  std::function<void(Call&)> spoil;
};

// What `run` refuses; none if it does not throw.
template <typename Run>
std::vector<Violation> violations_of(const Run& run) {
  try {
    run();
  } catch (const ArgumentError& error) {
    return error.violations();
  }
  return {};
}

// `run` takes a call. Each spoilt copy of `call` is refused for that one reason, with a fix.
template <typename Call, typename Run>
void check_bad_calls(const std::vector<BadCall<Call>>& bad_calls, const Call& call,
                     const Run& run) {
  for (const BadCall<Call>& bad : bad_calls) {
    Call spoilt = call;
    bad.spoil(spoilt);
    const std::vector<Violation> violations = violations_of([&] { run(spoilt); });
    INFO(bad.field << ": " << bad.rule);
    REQUIRE(violations.size() == 1);
    CHECK(violations[0].field == bad.field);
    CHECK(violations[0].rule.find(bad.rule) != std::string::npos);
    CHECK_FALSE(violations[0].fix.empty());
  }
}

}  // namespace attnjit::test
