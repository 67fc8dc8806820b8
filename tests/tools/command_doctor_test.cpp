#include <cstdlib>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

// The findings of `attnjit doctor <arguments> --json` by subject.
std::map<std::string, json> examine(const std::string& arguments, int exit_code) {
  const CommandOutput output = run_attnjit("doctor " + arguments + " --json");
  INFO(output.out << output.err);
  REQUIRE(output.exit_code == exit_code);
  std::map<std::string, json> findings;
  const json document = json::parse(output.out);
  for (const json& finding : document.at("findings")) {
    findings[finding.at("subject")] = finding;
  }
  CHECK(document.at("schema") == 1);
  CHECK(document.at("healthy") == (exit_code == 0));
  return findings;
}

bool text_holds(const json& finding, const std::string& part) {
  return finding.at("text").get<std::string>().find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("doctor ends with 5 where NVRTC is missing, and lists what it tried") {
  const auto findings = examine("--nvrtc /nonexistent/libnvrtc.so.13", 5);
  CHECK(findings.at("nvrtc").at("verdict") == "problem");
  CHECK(text_holds(findings.at("nvrtc"), "option /nonexistent/libnvrtc.so.13: no such file"));
}

TEST_CASE("doctor counts entries and makes no cache directory") {
  const TemporaryDirectory directory;
  const std::filesystem::path cache = directory.path() / "not" / "there yet";
  const CommandOutput output = run_attnjit("doctor --cache-dir '" + cache.string() + "'");
  CHECK(output.out.find("there yet: 0 entries, 0.0 MiB") != std::string::npos);
  CHECK(!std::filesystem::exists(directory.path() / "not"));
}

TEST_CASE("a cache directory that is a file is a problem that names it") {
  const TemporaryDirectory directory;
  const std::string file = directory.write("file", "");
  const CommandOutput output = run_attnjit("doctor --cache-dir " + file);
  CHECK(output.exit_code != 0);
  CHECK(output.out.find(file + " is no directory") != std::string::npos);
}

TEST_CASE("templates that are missing are a problem") {
  const TemporaryDirectory directory;
  const CommandOutput output = run_attnjit("doctor --templates " + directory.path().string());
  CHECK(output.exit_code != 0);
  CHECK(output.out.find("problem  templates") != std::string::npos);
}

TEST_CASE("a driver that ATTNJIT_LIBCUDA names and that is none is a problem with its name") {
  const TemporaryDirectory directory;
  for (const std::string& path : {directory.write("libcuda.so.1", "text"),
                                  directory.path().string(), std::string("/nonexistent/libcuda")}) {
    setenv("ATTNJIT_LIBCUDA", path.c_str(), 1);
    const CommandOutput examined = run_attnjit("doctor");
    const CommandOutput timed = run_attnjit("bench deepseek-v3 --tp 8");
    unsetenv("ATTNJIT_LIBCUDA");
    INFO(examined.out << timed.err);
    CHECK(examined.exit_code != 0);
    CHECK(examined.out.find("problem  driver     ATTNJIT_LIBCUDA = " + path + ": ") !=
          std::string::npos);
    CHECK(timed.exit_code == 5);
    CHECK(timed.err.find("ATTNJIT_LIBCUDA = " + path + ": ") != std::string::npos);
  }
}

}  // namespace attnjit
