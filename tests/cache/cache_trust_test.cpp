// Whose directories a cache uses, and the modes of what it makes.
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "scratch_directory.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using test::ScratchDirectory;

CacheKey some_key() {
  return CacheKeyBuilder().add("source", "kernel").finish();
}

CacheOptions shared(const fs::path& directory) {
  CacheOptions options;
  options.directory = directory;
  options.sharing = CacheSharing::group;
  return options;
}

int mode_of(const fs::path& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<int>(status.st_mode & 07777) : -1;
}

// The one warning of a cache that must refuse `root`; empty if it used it.
std::string refusal_of(const fs::path& root) {
  std::vector<std::string> warnings;
  DiskCache cache(root, [&](std::string_view warning) { warnings.emplace_back(warning); });
  const bool is_stored = cache.put(some_key(), "", "cubin");
  const MissReason reason = cache.get(some_key()).reason;
  CHECK(warnings.size() == (is_stored ? 0 : 1));
  CHECK((is_stored || reason == MissReason::untrusted));
  CHECK(cache.lock(some_key(), {}).is_held() == is_stored);
  CHECK(cache.trust_problem().empty() == is_stored);
  return warnings.empty() ? "" : warnings[0];
}

void chown_to(const fs::path& path, uid_t user) {
  REQUIRE(::lchown(path.c_str(), user, user) == 0);
}

}  // namespace

TEST_CASE("trust: a directory that others can write is not used, with the chmod that mends it") {
  const ScratchDirectory scratch;
  for (const unsigned mode : {0700U, 0755U}) {
    fs::permissions(scratch.path(), fs::perms(mode));
    CHECK(refusal_of(scratch.path()).empty());
  }
  for (const unsigned mode : {0720U, 0702U, 0775U, 0777U, 01777U}) {
    fs::permissions(scratch.path(), fs::perms(mode));
    const std::string refusal = refusal_of(scratch.path());
    CHECK(refusal.find(scratch.path().string()) != std::string::npos);
    CHECK(refusal.find("chmod go-w") != std::string::npos);
    CHECK(refusal.find("ATTNJIT_CACHE_SHARED=1") != std::string::npos);
  }
  fs::permissions(scratch.path(), fs::perms(0700));
  CHECK(refusal_of(scratch.path()).empty());
}

TEST_CASE("trust: a directory in one that everybody can write is used only under a sticky bit") {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path() / "open" / "cache";
  fs::create_directories(root);
  fs::permissions(root, fs::perms(0700));
  fs::permissions(scratch.path() / "open", fs::perms(0777));
  CHECK(refusal_of(root).find("chmod o-w") != std::string::npos);
  fs::permissions(scratch.path() / "open", fs::perms(01777));
  CHECK(refusal_of(root).empty());
}

TEST_CASE("trust: a directory or a link of another user is not used") {
  if (::geteuid() != 0) {
    WARN("not run: only root can give files away");
    return;
  }
  const ScratchDirectory scratch;
  const fs::path theirs = scratch.path() / "theirs";
  const fs::path mine = scratch.path() / "mine";
  for (const fs::path& path : {theirs, mine}) {
    fs::create_directory(path);
    fs::permissions(path, fs::perms(0700));
  }
  chown_to(theirs, 65534);
  fs::create_directory_symlink(theirs, scratch.path() / "to theirs");
  fs::create_directory_symlink(mine, scratch.path() / "to mine");
  fs::create_directory_symlink(mine, scratch.path() / "their link");
  chown_to(scratch.path() / "their link", 65534);
  CHECK(refusal_of(theirs).find("belongs to user 65534") != std::string::npos);
  CHECK(refusal_of(scratch.path() / "to theirs").find("leads to a directory that belongs to") !=
        std::string::npos);
  CHECK(refusal_of(scratch.path() / "their link").find("belongs to user") != std::string::npos);
  CHECK(refusal_of(scratch.path() / "to mine").empty());
  CHECK(fs::is_empty(theirs));
}

TEST_CASE("trust: shared mode uses what a group owns, and makes what a group can write") {
  for (const mode_t mask : {mode_t{0000}, mode_t{0022}, mode_t{0077}}) {
    const ScratchDirectory scratch;
    const fs::path root = scratch.path() / "parent" / "cache";
    const mode_t before = ::umask(mask);
    {
      DiskCache cache(shared(root), nullptr);
      CHECK(cache.lock(some_key(), {}).is_held());
      REQUIRE(cache.put(some_key(), "", "cubin"));
    }
    ::umask(before);
    const fs::path entry = DiskCache(root, nullptr).list()[0].path;
    for (const fs::path& directory :
         {root, root / "v1", entry.parent_path(), root / "locks", root / "stats"}) {
      CHECK(mode_of(directory) == 02770);
    }
    CHECK(mode_of(entry) == 0660);
    CHECK(mode_of(root / "locks" / some_key().digest.substr(0, 2)) == 0660);
    for (const auto& file : fs::directory_iterator(root / "stats")) {
      CHECK(mode_of(file.path()) == 0660);
    }
    CHECK(DiskCache(root, nullptr).get(some_key()).reason == MissReason::untrusted);
    CHECK(DiskCache(shared(root), nullptr).get(some_key()).entry.has_value());
  }
}

TEST_CASE("trust: two users of one group share a directory, under any umask") {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path() / "cache";
  fs::create_directory(root);
  if (::geteuid() != 0) {
    WARN("not run: only root can become two users");
    return;
  }
  REQUIRE(::chown(root.c_str(), 0, 4321) == 0);
  REQUIRE(::chmod(root.c_str(), 02770) == 0);
  const auto run_as = [&](uid_t user, const std::function<int()>& body) {
    return test::run_in_child([&] {
      if (::setgid(4321) != 0 || ::setuid(user) != 0) {
        return static_cast<int>(test::not_permitted);
      }
      ::umask(0077);
      return body();
    });
  };
  const int writer = run_as(
      54321, [&] { return DiskCache(shared(root), nullptr).put(some_key(), "", "first") ? 0 : 1; });
  if (writer == test::not_permitted) {
    WARN("not run: this process may not become another user");
    return;
  }
  CHECK(writer == 0);
  CHECK(run_as(54322, [&] {
          DiskCache cache(shared(root), nullptr);
          const bool is_hit = cache.get(some_key()).entry.has_value();
          return is_hit && cache.lock(some_key(), {}).is_held() &&
                         cache.put(some_key(), "", "second")
                     ? 0
                     : 1;
        }) == 0);
}

TEST_CASE("trust: what is made for one user is that user's alone, under any umask") {
  for (const mode_t mask : {mode_t{0000}, mode_t{0077}}) {
    const ScratchDirectory scratch;
    const fs::path root = scratch.path() / "cache";
    const mode_t before = ::umask(mask);
    {
      DiskCache cache(root, nullptr);
      CHECK(cache.lock(some_key(), {}).is_held());
      REQUIRE(cache.put(some_key(), "", "cubin"));
    }
    ::umask(before);
    for (const auto& file : fs::recursive_directory_iterator(root)) {
      CHECK(mode_of(file.path()) == (file.is_directory() ? 0700 : 0600));
    }
    CHECK(mode_of(root) == 0700);
  }
}

}  // namespace attnjit
