// What is said on the command line reaches the command as it was said, or is refused.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a path in brackets with a comma is one path") {
  const TemporaryDirectory directory;
  fs::create_directory(directory.path() / "[a,b]");
  const std::string enter =
      fmt::format("; cd '{}'; '{}' ", directory.path().string(), ATTNJIT_COMMAND);
  const CommandOutput mounted = run_attnjit("--version" + enter + "mount '[a,b]'");
  CHECK(mounted.exit_code == 0);
  CHECK(holds(mounted.out, "/[a,b]'\n"));
  const CommandOutput layer =
      run_attnjit("--version" + enter + "ls --cache-dir own --cache-layer='[a,b]'");
  CHECK(layer.exit_code == 0);
  CHECK(layer.err.empty());
}

TEST_CASE("a text in brackets comes whole, in every place and in messages about it") {
  for (const std::string command :
       {"warm '[1,2]'", "plan '[1,2]'", "explain deepseek-v3 --arch '[1,2]'", "report '[1,2]'",
        "warm --from-trace '[1,2]'", "'[1,2]'", "src '[1,2]'", "doctor '[1,2]'",
        "bundle out --kernel '[1,2]'", "warm '[1,2]' --arch sm_80", "mount -- '[1,2]'"}) {
    INFO(command);
    const CommandOutput output = run_attnjit(command);
    CHECK(output.exit_code != 0);
    // Of what takes a list the first item.
    CHECK((holds(output.err, "[1,2]") || holds(output.err, "= [1: ")));
    CHECK(!holds(output.err, "x1f"));
  }
  CHECK(holds(run_attnjit("mount \"$(printf '[a\\037')\"").err, "[a\\x1f"));
}

TEST_CASE("a value that is empty is refused by the name of what it was given to") {
  const std::vector<std::string> commands = {"gc --max-bytes",
                                             "gc --cache-dir",
                                             "ls --cache-layer",
                                             "warm deepseek-v3 --nvrtc",
                                             "warm deepseek-v3 --templates",
                                             "warm deepseek-v3 --jobs",
                                             "warm deepseek-v3 --shard",
                                             "warm --from-trace",
                                             "doctor --nvrtc",
                                             "explain deepseek-v3 --arch",
                                             "verify --against",
                                             "check --filter",
                                             "check --templates",
                                             "tune deepseek-v3 --table",
                                             "repro deepseek-v3 --out"};
  for (const std::string& command : commands) {
    INFO(command);
    const std::string option = command.substr(command.rfind(' ') + 1);
    for (const std::string& line : {command + " ''", command + "=", command + "=''"}) {
      const CommandOutput output = run_attnjit(line);
      CHECK(output.exit_code == 2);
      CHECK(holds(output.err, option));
      CHECK(holds(output.err, "; fix: give "));
      CHECK(output.out.empty());
    }
  }
  for (const std::string command : {"warm ''", "plan ''", "mount ''", "import ''", "bundle ''",
                                    "report ''", "src ''", "diff '{}' ''"}) {
    INFO(command);
    const CommandOutput output = run_attnjit(command);
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, "is empty; fix: "));
  }
}

TEST_CASE("an option is not taken for the value of the one before it") {
  const TemporaryDirectory directory;
  for (const std::string command :
       {"gc --cache-dir --dry-run", "gc --cache-dir= --dry-run", "warm '{}' --cache-dir --json",
        "doctor --nvrtc --templates=x"}) {
    INFO(command);
    const CommandOutput output = run_attnjit(command);
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, "has no value"));
  }
  const CommandOutput meant =
      run_attnjit(fmt::format("ls --cache-dir='{}/--json' --json", directory.path().string()));
  CHECK(meant.exit_code == 0);
  CHECK(holds(meant.out, "/--json\""));
}

}  // namespace attnjit
