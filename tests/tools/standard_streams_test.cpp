// What the command does where its output, or a file of its own, cannot be written.
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Of `attnjit <command>`, redirections and all; minus the signal that ended it.
int run_in_shell(const std::string& command) {
  const std::string line = std::string("exec '") + ATTNJIT_COMMAND + "' " + command;
  const int status = std::system(line.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("an error that cannot be told still ends with its exit code") {
  for (const std::string target : {"2>/dev/full", "2>&-"}) {
    INFO(target);
    CHECK(run_in_shell("plan no-such-model >/dev/null " + target) == 2);
    CHECK(run_in_shell("nonsense >/dev/null " + target) == 2);
    CHECK(run_in_shell("models >/dev/full " + target) == 1);
    CHECK(run_in_shell("warm deepseek-v3 --tp 8 --arch sm_90a --phases decode --nvrtc ./no/such "
                       "--cache-dir /dev/null/cache >/dev/null " +
                       target) != -SIGABRT);
  }
}

TEST_CASE("closed standard streams are no place for a file of the command") {
  CHECK(run_in_shell("models <&- >/dev/null 2>&-") == 0);
  CHECK(run_in_shell("models >&- 2>/dev/null") == 1);
  CHECK(run_in_shell("models <&- >&- 2>&-") == 1);
}

TEST_CASE("a result that cannot be written is one message and 1, whatever the command") {
  for (const std::string command :
       {"--help", "--version", "plan --help", "caps", "caps --json", "caps --markdown", "models",
        "models --json", "plan deepseek-v3", "plan deepseek-v3 --json",
        "src deepseek-v3 --tp 8 --arch sm_90a", "roof deepseek-v3 --arch h200", "man",
        "completion bash", "why '{}' --arch sm_90a"}) {
    INFO(command);
    const CommandOutput output = run_attnjit(command, "/dev/full");
    CHECK(output.exit_code == 1);
    CHECK(output.err == "attnjit: cannot write to standard output\n");
  }
}

TEST_CASE("an unknown command is named, and what commands there are") {
  const CommandOutput output = run_attnjit("nonsense --json");
  CHECK(output.exit_code == 2);
  CHECK(holds(output.err, "\"nonsense\" is not a command"));
  CHECK(holds(
      output.err,
      "bench, bundle, caps, check, completion, diff, doctor, explain, gc, import, ls, man, models, "
      "mount, plan, report, repro, res, roof, show, src, stats, tune, verify, warm, why"));
}

TEST_CASE("a number that is not decimal is refused by the name of its option") {
  for (const std::string option : {"--page 0x40", "--page 010", "--tp 0x8", "--max-seqlen-q 01"}) {
    INFO(option);
    const CommandOutput output = run_attnjit("plan deepseek-v3 " + option);
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, "is not a decimal number"));
    CHECK(holds(output.err, option.substr(0, option.find(' '))));
  }
  CHECK(run_attnjit("bench deepseek-v3 --batch 1,0x10").exit_code == 2);
  CHECK(run_attnjit("plan deepseek-v3 --page 64 --tp 8").exit_code == 0);
}

TEST_CASE("a list with an empty item is refused by the name of its option") {
  for (const std::string command :
       {"explain deepseek-v3 --arch h100,", "explain deepseek-v3 --arch=,h100",
        "explain --arch h100,,h200 deepseek-v3", "plan deepseek-v3 --phases decode,",
        "warm deepseek-v3 --arch h100,", "bench deepseek-v3 --batch 1,,2",
        "bench deepseek-v3 --seqlen-kv 1,", "tune deepseek-v3 --kernel swapped_decode_sm90,"}) {
    INFO(command);
    const CommandOutput output = run_attnjit(command);
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, "--"));
    CHECK(holds(output.err, "empty item"));
  }
  CHECK(run_attnjit("explain deepseek-v3 --arch h100,h200").exit_code == 0);
  CHECK(run_attnjit("explain deepseek-v3 --device-preset h100,").exit_code == 2);
}

TEST_CASE("a real number that is none is refused by the name of its option") {
  for (const std::string number : {"nan", "inf", "-nan", "0x1p3", "1e999", "5x", "''"}) {
    INFO(number);
    const CommandOutput output = run_attnjit("tune deepseek-v3 --margin " + number);
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, "--margin"));
  }
}

TEST_CASE("control characters of an argument are not sent to the terminal") {
  for (const std::string command :
       {"warm deepseek-v3 --cache-dir /dev/null/cache --arch", "plan", "bench", ""}) {
    INFO(command);
    const CommandOutput output = run_attnjit(command + " \"$(printf 'a\\033[31mb')\"");
    CHECK(output.exit_code == 2);
    CHECK(!holds(output.err, "\033"));
    CHECK(holds(output.err, "a\\x1b[31mb"));
  }
}

TEST_CASE("bench refuses a bad descriptor as check does, with or without a driver") {
  for (const std::string argument : {"'{'", "'{\"head_dim_qk\":1}'", "no-such-model"}) {
    INFO(argument);
    const CommandOutput checked = run_attnjit("check " + argument);
    const CommandOutput timed = run_attnjit("bench " + argument);
    CHECK(timed.exit_code == checked.exit_code);
    CHECK(timed.err == checked.err);
    CHECK(!holds(timed.err, "driver"));
  }
}

TEST_CASE("a file size limit is a message, not the end by a signal") {
  const TemporaryDirectory directory;
  const std::string err = (directory.path() / "err").string();
  const std::string out = (directory.path() / "out").string();
  const std::string line = std::string("ulimit -f 1; '") + ATTNJIT_COMMAND +
                           "' src deepseek-v3 --tp 8 --arch sm_90a >'" + out + "' 2>'" + err + "'";
  const int status = std::system(line.c_str());
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(text_of(err) == "attnjit: cannot write to standard output\n");
}

}  // namespace attnjit
