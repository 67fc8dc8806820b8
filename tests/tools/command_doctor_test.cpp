#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

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
  CHECK(text_holds(findings.at("nvrtc"),
                   "the option nvrtc, /nonexistent/libnvrtc.so.13: no such file"));
}

TEST_CASE("doctor counts entries and makes no cache directory") {
  const TemporaryDirectory directory;
  const std::filesystem::path cache = directory.path() / "not" / "there yet";
  const CommandOutput output = run_attnjit("doctor --cache-dir '" + cache.string() + "'");
  CHECK(output.out.find("there yet: 0 entries, 0.0 MiB") != std::string::npos);
  CHECK(!std::filesystem::exists(directory.path() / "not"));
}

TEST_CASE("doctor shows who is trusted to write the cache, and each of its layers") {
  namespace fs = std::filesystem;
  const TemporaryDirectory directory;
  const fs::path own = directory.path() / "own";
  const fs::path open = directory.path() / "open";
  fs::create_directories(own);
  fs::create_directories(directory.path() / "layer");
  fs::create_directories(open);
  fs::permissions(own, fs::perms(0700));
  fs::permissions(open, fs::perms(0777));
  const auto findings_of = [&](const std::string& cache) {
    const CommandOutput output =
        run_attnjit("doctor --json --cache-dir '" + cache + "' --cache-layer '" +
                    (directory.path() / "layer").string() + "' --cache-layer '" + open.string() +
                    "' --cache-layer '" + (directory.path() / "none").string() + "'");
    return json::parse(output.out).at("findings");
  };
  std::vector<std::string> texts;
  std::string of_cache;
  for (const json& finding : findings_of(own.string())) {
    if (finding.at("subject") == "layer") {
      texts.push_back(finding.at("verdict").get<std::string>() + ": " +
                      finding.at("text").get<std::string>());
    } else if (finding.at("subject") == "cache") {
      of_cache = finding.at("text");
    }
  }
  CHECK(of_cache.find("own: 0 entries, 0.0 MiB; trusted: nobody else can write it") !=
        std::string::npos);
  REQUIRE(texts.size() == 3);
  CHECK(texts[0].starts_with("good: "));
  CHECK(texts[0].find("layer: 0 entries, 0.0 MiB, a directory; trusted") != std::string::npos);
  CHECK(texts[1].starts_with("problem: "));
  CHECK(texts[1].find("open: left out, everybody can write it; fix: chmod") != std::string::npos);
  CHECK(texts[2].starts_with("problem: "));
  CHECK(texts[2].find("none: left out, cannot open the layer") != std::string::npos);
  for (const json& finding : findings_of(open.string())) {
    if (finding.at("subject") == "cache") {
      CHECK(finding.at("verdict") == "problem");
      CHECK(text_holds(finding, "others can write it; fix: chmod go-w it"));
    }
  }
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
