#include "progress.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "catch.hpp"

namespace attnjit {
namespace {

std::string read_back(std::FILE* file) {
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

}  // namespace

TEST_CASE("a progress bar shows done, total, elapsed, ETA and the job in hand") {
  CHECK(format_progress_bar(
            {.done = 5, .total = 20, .elapsed_seconds = 2.0, .current = "paged_decode"}, 80) ==
        "[#####...............] 5/20  2.0 s  ETA 6.0 s  paged_decode");
}

TEST_CASE("a progress bar has no ETA before the first job ends nor after the last") {
  CHECK(format_progress_bar({.done = 0, .total = 2, .elapsed_seconds = 1, .current = "a"}, 80) ==
        "[....................] 0/2  1.0 s  a");
  CHECK(format_progress_bar({.done = 2, .total = 2, .elapsed_seconds = 1, .current = ""}, 80) ==
        "[####################] 2/2  1.0 s");
}

TEST_CASE("a progress bar is cut to the width of the terminal") {
  const ProgressState state{.done = 1, .total = 2, .elapsed_seconds = 1, .current = "kernel"};
  CHECK(format_progress_bar(state, 10) == "[#########");
  CHECK(format_progress_bar(state, 0).empty());
}

TEST_CASE("a file is no terminal and gets one line per finished job") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  CHECK(progress_style_for(file) == ProgressStyle::lines);
  {
    Progress progress(file, ProgressStyle::lines, 2);
    progress.begin("first");
    progress.finish("compiled");
    progress.begin("second");
    progress.finish("already cached");
  }
  CHECK(read_back(file) == "[1/2] first: compiled\n[2/2] second: already cached\n");
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
    Progress progress(file, ProgressStyle::bar, 1);
    progress.begin("first");
    progress.finish("compiled");
  }
  const std::string text = read_back(file);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(text.find("0/1") != std::string::npos);
  CHECK(text.find("1/1") != std::string::npos);
  CHECK(text.ends_with("\r\033[K"));
  std::fclose(file);
}

}  // namespace attnjit
