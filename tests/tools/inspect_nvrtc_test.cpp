// What commands that look at kernels do with a compiler: PTX, SASS, resources, why and diff.
#include <cstdlib>
#include <string>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string in_cache(const TemporaryDirectory& directory) {
  return " --cache-dir '" + directory.path().string() + "'";
}

}  // namespace

TEST_CASE("PTX is compiled now for the target's virtual architecture, and says what it is") {
  const TemporaryDirectory cache;
  const std::string arguments = "src '{}' --kernel schedule --arch h200 --stage ptx";
  const CommandOutput output = run_attnjit(arguments + in_cache(cache));
  INFO(output.err);
  REQUIRE(output.exit_code == 0);
  CHECK(holds(output.out, "It is not what runs"));
  CHECK(holds(output.out, "\n.target sm_90a\n"));
  CHECK(holds(output.out, ".entry schedule_decode("));
  CHECK(run_attnjit(arguments + in_cache(cache)).out == output.out);
}

TEST_CASE("SASS comes from a disassembler, or the message says where one was looked for") {
  const TemporaryDirectory cache;
  const CommandOutput output =
      run_attnjit("src '{}' --kernel schedule --arch h200 --stage sass" + in_cache(cache));
  if (output.exit_code == 0) {
    CHECK(holds(output.out, "EXIT"));
  } else {
    CHECK(output.exit_code == 5);
    CHECK(holds(output.err, "neither is on PATH"));
    CHECK(holds(output.err, "fix: install"));
  }
}

TEST_CASE("a disassembler on PATH is given the cubin of the cache") {
  const TemporaryDirectory cache;
  const TemporaryDirectory tools;
  const std::string tool =
      tools.write("nvdisasm", "#!/bin/sh\nhead -c 4 \"$2\" | tail -c 3\necho \" $1\"\n");
  REQUIRE(std::system(("chmod +x '" + tool + "'").c_str()) == 0);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (tools.path().string() + ":" + path).c_str(), 1);
  const std::string arguments =
      "src '{}' --kernel schedule --arch h200 --stage sass" + in_cache(cache);
  const CommandOutput compiled = run_attnjit(arguments);
  const CommandOutput cached = run_attnjit(arguments);
  const std::string failing = tools.write("nvdisasm", "#!/bin/sh\necho broken; exit 3\n");
  const CommandOutput failed = run_attnjit(arguments);
  setenv("PATH", path.c_str(), 1);
  CHECK(compiled.out == "ELF --print-code\n");
  CHECK(holds(compiled.err, "compiling schedule_decode for sm_90a, which is not in the cache"));
  CHECK(cached.out == compiled.out);
  CHECK(cached.err.empty());
  CHECK(failed.exit_code == 5);
  CHECK(holds(failed.err, "failed (3): broken"));
}

TEST_CASE("res compiles what is not cached and says so, and then it is cached") {
  const TemporaryDirectory cache;
  const std::string arguments = "res '{}' --kernel schedule --arch h200 --json" + in_cache(cache);
  const CommandOutput first = run_attnjit(arguments);
  INFO(first.err);
  REQUIRE(first.exit_code == 0);
  CHECK(holds(first.err, "compiling schedule_decode"));
  const json kernel = json::parse(first.out).at("kernels").at(0);
  CHECK(kernel.at("registers") > 16);
  CHECK(kernel.at("threads") == 1024);
  CHECK(kernel.at("occupancy").at("blocks_per_sm") >= 1);
  const CommandOutput second = run_attnjit(arguments + " --cached");
  CHECK(second.err.empty());
  CHECK(second.out == first.out);
}

TEST_CASE("why is a hit for what show then tells, and a key of another toolchain is near") {
  const TemporaryDirectory cache;
  const std::string named = " '{}' --kernel schedule --arch h200" + in_cache(cache);
  CHECK(holds(run_attnjit("why" + named).out, "miss (absent)"));
  REQUIRE(run_attnjit("res" + named).exit_code == 0);
  const json account = json::parse(run_attnjit("why" + named + " --json").out);
  CHECK(account.at("kernels").at(0).at("hit") == true);
  CHECK(account.at("kernels").at(0).at("probes").at(0).at("outcome") == "hit");
  const json shown = json::parse(run_attnjit("show" + named + " --json").out);
  CHECK(shown.at("entries").at(0).at("key") == account.at("kernels").at(0).at("key"));
  const std::string other =
      " '{\"page_size\": 32}' --kernel schedule --arch l40s" + in_cache(cache);
  CHECK(holds(run_attnjit("why" + other).out, "target: sm_89, there sm_90a"));
}

TEST_CASE("diff compiles both sides and compares their PTX on request") {
  const TemporaryDirectory cache;
  const CommandOutput output = run_attnjit(
      "diff '{}' '{\"mask\": \"sliding_window\", \"window_left\": 100, \"max_seqlen_q\": 2}' "
      "--kernel schedule --arch h200 --ptx" +
      in_cache(cache));
  INFO(output.err);
  REQUIRE(output.exit_code == 0);
  CHECK(holds(output.out, "config window_left"));
  CHECK(holds(output.out, "registers"));
  CHECK(holds(output.out, "--- A.ptx"));
  CHECK(holds(output.out, "+++ B/kernel_config.cuh"));
}

}  // namespace attnjit
