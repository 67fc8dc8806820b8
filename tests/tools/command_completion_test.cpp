// The completion scripts, bash's run in a real bash, and the man page.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> block;
  while (std::fgets(block.data(), static_cast<int>(block.size()), pipe) != nullptr) {
    text += block.data();
  }
  pclose(pipe);
  return text;
}

// What bash offers for the last of `words`, on lines; through `complete` as a user's shell calls
// it.
std::string complete_in_bash(const std::string& words) {
  const TemporaryDirectory directory;
  const std::string script = directory.write("completion", run_attnjit("completion bash").out);
  const std::string program = directory.write(
      "run", ". '" + script +
                 "'\n"
                 "[ \"$(complete -p attnjit)\" = 'complete -o default -F _attnjit attnjit' ] || "
                 "exit 1\n"
                 "COMP_WORDS=(" +
                 words +
                 ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                 "_attnjit\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
  return output_of("bash --norc '" + program + "' 2>&1");
}

}  // namespace

TEST_CASE("bash completes commands, options, choices, lists and presets") {
  if (std::system("command -v bash >/dev/null") != 0) {
    WARN("not checked: there is no bash");
    return;
  }
  CHECK(complete_in_bash("attnjit sr") == "src\n");
  CHECK(holds(complete_in_bash("attnjit ''"), "\nwarm\n"));
  CHECK(!holds(complete_in_bash("attnjit ''"), "warm-worker"));
  CHECK(complete_in_bash("attnjit src --sta") == "--stage\n");
  CHECK(complete_in_bash("attnjit src --stage ''") == "flat\nrendered\nconfig\nptx\nsass\n");
  CHECK(complete_in_bash("attnjit src --stage p") == "ptx\n");
  CHECK(complete_in_bash("attnjit plan --kv-dtype fp8") == "fp8_e4m3\nfp8_e5m2\n");
  CHECK(complete_in_bash("attnjit warm --arch h20") == "h200\nh20\n");
  CHECK(complete_in_bash("attnjit warm --arch sm_80,h200") == "sm_80,h200\n");
  CHECK(complete_in_bash("attnjit plan deepseek-v3.") == "deepseek-v3.1\ndeepseek-v3.2\n");
  CHECK(complete_in_bash("attnjit completion ''") == "bash\nzsh\nfish\n");
  CHECK(complete_in_bash("attnjit src --cache-dir ''") == "\n");  // bash's own: files
}

TEST_CASE("every shell that is here reads its script without a word") {
  const TemporaryDirectory directory;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    INFO(shell);
    const CommandOutput output = run_attnjit("completion " + shell);
    CHECK(output.exit_code == 0);
    CHECK(holds(output.out, "stage"));
    CHECK(holds(output.out, "rendered"));
    const std::string path = directory.write(shell, output.out);
    if (std::system(("command -v " + shell + " >/dev/null").c_str()) == 0) {
      CHECK(output_of(shell + " -n '" + path + "' 2>&1").empty());
    }
  }
  CHECK(run_attnjit("completion tcsh").exit_code == 2);
}

TEST_CASE("the man page has every command and option, and roff finds no fault") {
  const CommandOutput output = run_attnjit("man");
  CHECK(output.exit_code == 0);
  CHECK(output.out.starts_with(".TH ATTNJIT 1 "));
  for (const std::string part : {".SS warm\n", "\\fB\\-\\-fail\\-on\\-spill\\fR", ".SH EXIT STATUS",
                                 "flat, rendered, config, ptx, sass"}) {
    INFO(part);
    CHECK(holds(output.out, part));
  }
  const TemporaryDirectory directory;
  const std::string path = directory.write("attnjit.1", output.out);
  if (std::system("command -v groff >/dev/null") == 0) {
    CHECK(output_of("groff -ww -man -Tutf8 -z '" + path + "' 2>&1").empty());
  }
  if (std::system("command -v mandoc >/dev/null") == 0) {
    CHECK(output_of("mandoc -T lint -W error '" + path + "' 2>&1").empty());
  }
}

}  // namespace attnjit
