#include "attnjit/failed_source.hpp"

#include <string>

#include <sys/stat.h>

#include "catch.hpp"
#include "scratch_directory.hpp"

using namespace attnjit;
using namespace attnjit::test;

namespace fs = std::filesystem;

namespace {

std::string digest_of(int number) {
  const std::string digits = std::to_string(number);
  return std::string(32 - digits.size(), '0') + digits;
}

}  // namespace

TEST_CASE("a failed source is for its owner only, and replaced by the next of its key") {
  const ScratchDirectory scratch;
  const SavedSource first = save_failed_source(scratch.path() / "new", digest_of(1), "int x");
  CHECK(first.problem.empty());
  CHECK(read_text(first.path) == "int x");
  struct stat status = {};
  REQUIRE(::stat(first.path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(save_failed_source(scratch.path() / "new", digest_of(1), "int y").path == first.path);
  CHECK(read_text(first.path) == "int y");
}

TEST_CASE("failed sources do not fill the disk") {
  const ScratchDirectory scratch;
  for (int i = 0; i < 64; ++i) {
    CHECK(save_failed_source(scratch.path(), digest_of(i), "").problem.empty());
  }
  const SavedSource refused = save_failed_source(scratch.path(), digest_of(64), "");
  CHECK(refused.path.empty());
  CHECK(refused.problem == (scratch.path() / "failed").string() +
                               " holds 64 sources; fix: delete what is no longer needed");
  CHECK(save_failed_source(scratch.path(), digest_of(63), "again").problem.empty());
}
