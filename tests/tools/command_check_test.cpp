// attnjit check, as far as it goes without a GPU: which cases it takes.
#include <string>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("check names the suites there are when it is asked for another") {
  const CommandOutput output = run_attnjit("check --suite merge");
  CHECK(output.exit_code == 2);
  CHECK(holds(output.err, "--suite: merge not in {decode,prefill,all}"));
}

TEST_CASE("a filter looks among the cases of the suite that was asked for") {
  const std::string filter = " --filter 'prefill, sinks'";
  const CommandOutput decode = run_attnjit("check --suite decode" + filter);
  CHECK(decode.exit_code == 2);
  CHECK(holds(decode.err, "no case holds this text"));
  for (const std::string suite : {"", " --suite all", " --suite prefill"}) {
    INFO(suite);
    CHECK(!holds(run_attnjit("check" + suite + filter + " --device 1000000").err,
                 "no case holds this text"));
  }
}

TEST_CASE("a suite beside a descriptor is refused") {
  const CommandOutput output = run_attnjit("check '{\"head_dim_qk\": 128}' --suite decode");
  CHECK(output.exit_code == 2);
  CHECK(
      holds(output.err, "--suite was given with a model or a descriptor, where it means nothing"));
}

}  // namespace
}  // namespace attnjit
