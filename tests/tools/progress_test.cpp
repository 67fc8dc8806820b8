#include "progress.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "catch.hpp"

namespace attnjit {
namespace {

std::string read_back(std::FILE* file) {
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

const ProgressJob first{.kernel = "first", .arch = "sm_90a"};
const ProgressJob second{.kernel = "second", .arch = "sm_80"};
const ProgressOutcome compiled{
    .words = "compiled", .state = "compiled", .milliseconds = 1.0, .problem = ""};

}  // namespace

TEST_CASE("a progress bar shows done, total, elapsed, ETA, workers and the jobs in hand") {
  CHECK(format_progress_bar({.done = 5,
                             .total = 20,
                             .elapsed_seconds = 2.0,
                             .seconds_left = 6.0,
                             .workers = 4,
                             .current = {"paged_decode", "prefill"}},
                            90) ==
        "[#####...............] 5/20  2.0 s  ETA 6.0 s  2 of 4 workers: paged_decode; prefill");
}

TEST_CASE("a progress bar has no ETA before one is known nor after the last job") {
  ProgressState state{.done = 0,
                      .total = 2,
                      .elapsed_seconds = 1,
                      .seconds_left = std::nullopt,
                      .workers = 1,
                      .current = {"a"}};
  CHECK(format_progress_bar(state, 80) == "[....................] 0/2  1.0 s  1 of 1 workers: a");
  state.done = 2;
  state.seconds_left = 0.5;
  state.current.clear();
  CHECK(format_progress_bar(state, 80) == "[####################] 2/2  1.0 s");
}

TEST_CASE("a progress bar is cut to the width of the terminal") {
  ProgressState state;
  state.done = 1;
  state.total = 2;
  CHECK(format_progress_bar(state, 10) == "[#########");
  CHECK(format_progress_bar(state, 0).empty());
}

TEST_CASE("a file is no terminal and gets one line per finished job, and notices") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  CHECK(progress_style_for(file) == ProgressStyle::lines);
  {
    Progress progress(file, ProgressStyle::lines, 2, 2);
    progress.begin(0, first);
    progress.begin(1, second);
    progress.notice("waits \033[31m");
    progress.finish(1, second, compiled);
    progress.tick(1.5);
    progress.finish(0, first, compiled);
  }
  CHECK(read_back(file) ==
        "attnjit: waits \\x1b[31m\n"
        "[1/2] second sm_80: compiled\n[2/2] first sm_90a: compiled\n");
  std::fclose(file);
}

TEST_CASE("progress as JSON is one event per line, and none at all is silent") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  {
    Progress progress(file, ProgressStyle::json, 1, 2);
    progress.begin(0, first);
    progress.notice("waits");
    progress.tick(1.5);
    progress.finish(0, first, compiled);
    Progress silent(file, ProgressStyle::none, 1, 2);
    silent.begin(0, first);
    silent.finish(0, first, compiled);
  }
  std::istringstream lines(read_back(file));
  std::string events;
  for (std::string line; std::getline(lines, line);) {
    events += nlohmann::json::parse(line).at("event").get<std::string>() + " ";
    CHECK(line.starts_with("{\"schema\":1,\"event\":"));
    if (events.ends_with("finish ")) {
      CHECK(nlohmann::json::parse(line).at("seconds_left") == 1.5);
      CHECK(nlohmann::json::parse(line).at("arch") == "sm_90a");
    }
  }
  CHECK(events == "begin start notice finish end ");
  std::fclose(file);
}

TEST_CASE("a terminal gets a bar unless it cannot move its cursor") {
  const int controller = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(controller >= 0);
  REQUIRE(grantpt(controller) == 0);
  REQUIRE(unlockpt(controller) == 0);
  std::FILE* terminal = std::fopen(ptsname(controller), "w");
  REQUIRE(terminal != nullptr);
  setenv("TERM", "xterm", 1);
  CHECK(progress_style_for(terminal) == ProgressStyle::bar);
  setenv("TERM", "dumb", 1);
  CHECK(progress_style_for(terminal) == ProgressStyle::lines);
  std::fclose(terminal);
  close(controller);
}

TEST_CASE("a progress bar redraws its line and leaves nothing behind") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  {
    Progress progress(file, ProgressStyle::bar, 1, 1);
    progress.begin(0, first);
    progress.finish(0, first, compiled);
  }
  const std::string text = read_back(file);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(text.find("0/1") != std::string::npos);
  CHECK(text.find("1/1") != std::string::npos);
  CHECK(text.ends_with("\r\033[K"));
  std::fclose(file);
}

}  // namespace attnjit
