// What DiskCache does where its directory cannot be used: disk_cache.cpp and entry_file.cpp.
#include <csignal>
#include <functional>
#include <string>

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "scratch_directory.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using test::ScratchDirectory;

CacheKey key_of(const std::string& source) {
  return CacheKeyBuilder().add("source", source).finish();
}

fs::path path_of(const fs::path& root, const CacheKey& key) {
  return root / "v1" / key.digest.substr(0, 2) / key.digest.substr(2);
}

// A cache and the warnings it gave.
struct WatchedCache {
  int warnings = 0;
  std::string message;
  DiskCache cache;

  explicit WatchedCache(std::optional<fs::path> directory)
      : cache(std::move(directory), [this](std::string_view warning) {
          ++warnings;
          message = warning;
        }) {}
};

// The limit hits in the middle of the file: the write is short first, then fails.
int put_under_file_size_limit(const fs::path& root) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) {
    return 2;
  }
  WatchedCache watched(root);
  const bool refused = !watched.cache.put(key_of("kernel"), "", std::string(100'000, 'x')) &&
                       watched.warnings == 1 &&
                       watched.cache.get(key_of("kernel")).reason == MissReason::absent;
  return refused && test::count_temporary_files(root) == 0 ? 0 : 1;
}

// On a file system of 64 KiB of its own, gone with the child.
int put_on_full_disk(const fs::path& root) {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", root.c_str(), "tmpfs", 0, "size=64k,mode=700") != 0) {
    return test::not_permitted;
  }
  WatchedCache watched(root);
  const bool refused = !watched.cache.put(key_of("kernel"), "", std::string(100'000, 'x')) &&
                       watched.message.find("No space left") != std::string::npos &&
                       watched.cache.get(key_of("kernel")).reason == MissReason::absent;
  const bool small_one_fits = watched.cache.put(key_of("small"), "", "x") &&
                              watched.cache.get(key_of("small")).entry.has_value();
  return refused && small_one_fits && test::count_temporary_files(root) == 0 ? 0 : 1;
}

// Without root's power to pass over permissions; 0, with a note, where that cannot be had.
int run_as_nobody(const std::function<int()>& body) {
  const int result = test::run_in_child([&] {
    test::become_user(65534);
    return body();
  });
  if (result == test::not_permitted) {
    WARN("not run: this process cannot become the user nobody");
    return 0;
  }
  return result;
}

}  // namespace

TEST_CASE("never fatal: without a directory every get is a miss and puts warn once") {
  WatchedCache watched(std::nullopt);
  CHECK(watched.cache.get(key_of("kernel")).reason == MissReason::disabled);
  CHECK(watched.warnings == 0);
  CHECK_FALSE(watched.cache.put(key_of("kernel"), "", "cubin"));
  CHECK_FALSE(watched.cache.put(key_of("other"), "", "cubin"));
  CHECK(watched.warnings == 1);
  CHECK(watched.message.find("ATTNJIT_CACHE_DIR") != std::string::npos);
  CHECK(watched.cache.get(key_of("kernel")).reason == MissReason::disabled);
  CHECK(watched.cache.list().empty());
}

TEST_CASE("never fatal: a cache without a warning handler fails silently") {
  DiskCache cache(std::nullopt, nullptr);
  CHECK_FALSE(cache.put(key_of("kernel"), "", "cubin"));
}

TEST_CASE(
    "never fatal: a directory that is a file is unreadable, and puts warn once with its path") {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path() / "file";
  test::write_text(root, "not a directory");
  WatchedCache watched(root);
  CHECK(watched.cache.get(key_of("kernel")).reason == MissReason::unreadable);
  CHECK_FALSE(watched.cache.put(key_of("kernel"), "", "cubin"));
  CHECK_FALSE(watched.cache.put(key_of("other"), "", "cubin"));
  CHECK(watched.warnings == 1);
  CHECK(watched.message.find(root.string()) != std::string::npos);
  CHECK(watched.cache.list().empty());
  CHECK(test::read_text(root) == "not a directory");
}

TEST_CASE("never fatal: a shard that is a file fails its puts and leaves the others alone") {
  const ScratchDirectory scratch;
  const CacheKey key = key_of("kernel");
  fs::create_directories(scratch.path() / "v1");
  test::write_text(path_of(scratch.path(), key).parent_path(), "not a directory");
  WatchedCache watched(scratch.path());
  CHECK(watched.cache.get(key).reason == MissReason::unreadable);
  CHECK_FALSE(watched.cache.put(key, "", "cubin"));
  CHECK(watched.cache.put(key_of("other"), "", "cubin"));
}

TEST_CASE("never fatal: a directory that cannot be made is a miss and one warning") {
  WatchedCache watched("/proc/attnjit-cache");
  CHECK(watched.cache.get(key_of("kernel")).reason == MissReason::absent);
  CHECK_FALSE(watched.cache.put(key_of("kernel"), "", "cubin"));
  CHECK(watched.warnings == 1);
}

TEST_CASE("never fatal: names that are too long and links that loop are misses and one warning") {
  const ScratchDirectory scratch;
  fs::create_symlink(scratch.path() / "loop", scratch.path() / "loop");
  for (const fs::path& root : {scratch.path() / std::string(300, 'x'), scratch.path() / "loop"}) {
    WatchedCache watched(root);
    CHECK(watched.cache.get(key_of("kernel")).reason == MissReason::unreadable);
    CHECK_FALSE(watched.cache.put(key_of("kernel"), "", "cubin"));
    CHECK(watched.warnings == 1);
  }
}

TEST_CASE("never fatal: a user who may read but not write gets hits, and one warning for puts") {
  const ScratchDirectory scratch;
  DiskCache owner(scratch.path(), nullptr);
  REQUIRE(owner.put(key_of("kernel"), "", "cubin"));
  const fs::path file = path_of(scratch.path(), key_of("kernel"));
  const fs::path directories[] = {file.parent_path(), scratch.path() / "v1", scratch.path()};
  fs::permissions(file, fs::perms(0444));
  for (const fs::path& made : directories) {
    fs::permissions(made, fs::perms(0555));
  }
  const int result = run_as_nobody([&] {
    WatchedCache watched(scratch.path());
    const bool hit = watched.cache.get(key_of("kernel")).entry.has_value();
    const bool stored = watched.cache.put(key_of("kernel"), "", "cubin") ||
                        watched.cache.put(key_of("other"), "", "cubin");
    return hit && !stored && watched.warnings == 1 ? 0 : 1;
  });
  CHECK(result == 0);
  for (const fs::path& made : directories) {
    fs::permissions(made, fs::perms(0777));  // so that it can be removed
  }
}

TEST_CASE("never fatal: an entry or a directory of another user is unreadable, not an error") {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path() / "cache";
  DiskCache owner(root, nullptr);
  REQUIRE(owner.put(key_of("kernel"), "", "cubin"));
  const auto unreadable_to_nobody = [&] {
    return run_as_nobody([&] {
      const DiskCache cache(root, nullptr);
      return cache.get(key_of("kernel")).reason == MissReason::unreadable ? 0 : 1;
    });
  };
  const fs::path file = path_of(root, key_of("kernel"));
  fs::permissions(root, fs::perms::none);  // also for an owner who is not root
  CHECK(unreadable_to_nobody() == 0);
  for (const fs::path& made : {root, root / "v1", file.parent_path()}) {
    fs::permissions(made, fs::perms(0755));
  }
  fs::permissions(file, fs::perms::none);
  CHECK(unreadable_to_nobody() == 0);
}

TEST_CASE("never fatal: what is not a regular file is never followed, read or waited for") {
  const ScratchDirectory scratch;
  const fs::path real = scratch.path() / "real";
  test::write_text(real, encode_entry({.key_text = "k", .metadata = "", .payload = "p"}));
  REQUIRE(read_entry(real).entry.has_value());
  fs::create_symlink(real, scratch.path() / "link");
  fs::create_directory(scratch.path() / "directory");
  REQUIRE(::mkfifo((scratch.path() / "fifo").c_str(), 0600) == 0);
  for (const std::string name : {"link", "directory", "fifo"}) {
    CHECK(read_entry(scratch.path() / name).reason == MissReason::unreadable);
    CHECK_FALSE(read_entry(scratch.path() / name).entry.has_value());
  }
  CHECK(read_entry("/dev/zero").reason == MissReason::unreadable);
  CHECK(read_entry(scratch.path() / "none").reason == MissReason::absent);
}

TEST_CASE("never fatal: a file too large for an entry is refused before it is read") {
  const ScratchDirectory scratch;
  const fs::path file = scratch.path() / "large";
  test::write_text(file, "");
  fs::resize_file(file, std::uintmax_t{1} << 40);  // sparse
  CHECK(read_entry(file).reason == MissReason::unreadable);
}

TEST_CASE("never fatal: a put that hits a file size limit half-way leaves nothing behind") {
  const ScratchDirectory scratch;
  CHECK(test::run_in_child([&] { return put_under_file_size_limit(scratch.path()); }) == 0);
}

TEST_CASE("never fatal: a put on a full disk leaves nothing behind and later puts work") {
  const ScratchDirectory scratch;
  const int result = test::run_in_child([&] { return put_on_full_disk(scratch.path()); });
  if (result == test::not_permitted) {
    WARN("not run: this process may not mount a file system");
    return;
  }
  CHECK(result == 0);
}

TEST_CASE("never fatal: a directory removed between two puts is made again") {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path() / "cache";
  WatchedCache watched(root);
  REQUIRE(watched.cache.put(key_of("kernel"), "", "cubin"));
  fs::remove_all(root);
  CHECK(watched.cache.get(key_of("kernel")).reason == MissReason::absent);
  CHECK(watched.cache.put(key_of("kernel"), "", "cubin"));
  CHECK(watched.cache.get(key_of("kernel")).entry.has_value());
  CHECK(watched.warnings == 0);
}

}  // namespace attnjit
