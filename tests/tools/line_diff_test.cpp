#include "line_diff.hpp"

#include <cstdlib>
#include <random>
#include <string>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

std::string diff(const std::string& left, const std::string& right) {
  return unified_diff("a", left, "b", right);
}

// Lines out of few letters, so that many are equal.
std::string random_lines(std::mt19937& random) {
  std::string text;
  for (auto count = random() % 30; count > 0; --count) {
    text += static_cast<char>('a' + random() % 4);
    text += '\n';
  }
  return text;
}

int count_changes(const std::string& text) {
  int changes = 0;
  for (std::size_t at = text.find("\n@@"); at != std::string::npos; at = text.find('\n', at + 1)) {
    const char mark = at + 1 < text.size() ? text[at + 1] : ' ';
    changes += mark == '+' || mark == '-' ? 1 : 0;
  }
  return changes;
}

}  // namespace

TEST_CASE("equal texts have no difference") {
  CHECK(diff("", "").empty());
  CHECK(diff("a\nb\n", "a\nb\n").empty());
}

TEST_CASE("a changed line has three lines of context around it") {
  CHECK(diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nV\n6\n7\n8\n9\n") ==
        "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+V\n 6\n 7\n 8\n");
}

TEST_CASE("lines are put in before the first, behind the last, and into nothing") {
  CHECK(diff("1\n", "0\n1\n") == "--- a\n+++ b\n@@ -1 +1,2 @@\n+0\n 1\n");
  CHECK(diff("1\n", "1\n2\n") == "--- a\n+++ b\n@@ -1 +1,2 @@\n 1\n+2\n");
  CHECK(diff("", "1\n2\n") == "--- a\n+++ b\n@@ -0,0 +1,2 @@\n+1\n+2\n");
  CHECK(diff("1\n", "") == "--- a\n+++ b\n@@ -1 +0,0 @@\n-1\n");
}

TEST_CASE("a last line without an end is told") {
  CHECK(diff("1", "1\n") == "--- a\n+++ b\n@@ -1 +1 @@\n-1\n\\ No newline at end of file\n+1\n");
}

TEST_CASE("changes far apart are hunks of their own") {
  std::string left;
  for (int i = 0; i < 40; ++i) {
    left += std::to_string(i) + "\n";
  }
  std::string right = left;
  right.replace(right.find("5\n"), 2, "five\n");
  right.replace(right.find("30\n"), 3, "thirty\n");
  const std::string text = diff(left, right);
  CHECK(text.find("@@ -3,7 +3,7 @@") != std::string::npos);
  CHECK(text.find("@@ -28,7 +28,7 @@") != std::string::npos);
}

TEST_CASE("patch makes the right text of the left one, and no diff has fewer lines") {
  if (std::system("command -v patch diff >/dev/null") != 0) {
    WARN("neither checked: there is no patch, or no diff");
    return;
  }
  std::mt19937 random(7);
  for (int i = 0; i < 100; ++i) {
    const TemporaryDirectory directory;
    const std::string left = random_lines(random);
    const std::string right = random_lines(random);
    const std::string path = directory.write("a", left);
    directory.write("b", right);
    const std::string text = diff(left, right);
    directory.write("d", text);
    const std::string in = "cd '" + directory.path().string() + "' && ";
    if (!text.empty()) {
      REQUIRE(std::system((in + "cp a c && patch -s c d && cmp c b").c_str()) == 0);
    }
    REQUIRE(std::system((in +
                         "diff --minimal -u a b | grep -c '^[-+][a-d]' >n; test \"$(cat n)\" "
                         "-eq " +
                         std::to_string(count_changes(text)))
                            .c_str()) == 0);
  }
}

TEST_CASE("texts that share hardly a line are replaced as a whole, in little time") {
  std::string left;
  std::string right;
  for (int i = 0; i < 20000; ++i) {
    left += "l" + std::to_string(i) + "\n";
    right += "r" + std::to_string(i) + "\n";
  }
  CHECK(count_changes(diff(left + "end\n", right + "end\n")) == 40000);
}

}  // namespace attnjit
