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
  CHECK(holds(output.err, "--suite: merge not in {decode,prefill,sparse,contract,all}"));
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

TEST_CASE("requirements that need no GPU are checked without one, chosen by a glob of their ids") {
  const CommandOutput errors = run_attnjit("check --suite contract --filter 'R5?'");
  CHECK(errors.exit_code == 0);
  CHECK(holds(errors.out, "R50  "));
  CHECK(holds(errors.out, "R55  "));
  CHECK(holds(errors.out, "6 of 6 requirements met"));
  const CommandOutput json = run_attnjit("check --suite contract --filter R44 --json");
  CHECK(json.exit_code == 0);
  CHECK(holds(json.out, "\"id\":\"R44\""));
}

TEST_CASE("a glob that no requirement has is refused") {
  const CommandOutput output = run_attnjit("check --suite contract --filter 'R5?9'");
  CHECK(output.exit_code == 2);
  CHECK(holds(output.err, "no requirement has such an id"));
}

TEST_CASE("a suite beside a descriptor is refused") {
  const CommandOutput output = run_attnjit("check '{\"head_dim_qk\": 128}' --suite decode");
  CHECK(output.exit_code == 2);
  CHECK(
      holds(output.err, "--suite was given with a model or a descriptor, where it means nothing"));
}

TEST_CASE("what means nothing beside --fuzz is refused by name, and so is what needs it") {
  for (const std::string option :
       {"--tp 2", "--dtype fp16", "--kv-dtype fp16", "--page 16", "--max-seqlen-q 2",
        "--batch-invariant", "--phases decode", "--batch 7", "--seqlen-kv 9", "--suite decode",
        "--filter sinks"}) {
    const CommandOutput output = run_attnjit("check --fuzz 3 " + option);
    INFO(option << ": " << output.err);
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, option.substr(0, option.find(' ')) + " was given with --fuzz, where"));
  }
  const CommandOutput model = run_attnjit("check --fuzz 3 llama-3-8b");
  CHECK(model.exit_code == 2);
  CHECK(holds(model.err, "a model or a descriptor was given with --fuzz, where it means nothing"));
  for (const std::string option : {"--seed", "--first"}) {
    const CommandOutput output = run_attnjit("check " + option + " 5");
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, option + " was given with no --fuzz, where it means nothing"));
  }
}

TEST_CASE("numbers of --fuzz that are none, or too large, are refused") {
  CHECK(run_attnjit("check --fuzz 0").exit_code == 2);
  CHECK(run_attnjit("check --fuzz 1000001").exit_code == 2);
  for (const std::string option : {"--seed", "--first"}) {
    for (const std::string number : {"-1", "1.5", "010", "0x10", "18446744073709551616"}) {
      std::string line = "check --fuzz 1 " + option;
      line.append(" ").append(number);
      const CommandOutput output = run_attnjit(line);
      INFO(line << ": " << output.err);
      CHECK(output.exit_code == 2);
      CHECK(holds(output.err, option));
    }
  }
}

TEST_CASE("fuzzing needs a device, as the suites do, whatever the seed") {
  const CommandOutput output =
      run_attnjit("check --fuzz 5 --seed 18446744073709551615 --first 7 --device 1000000");
  CHECK(output.exit_code == run_attnjit("check --device 1000000").exit_code);
  CHECK(output.exit_code != 0);
  CHECK(output.exit_code != 2);
}

}  // namespace
}  // namespace attnjit
