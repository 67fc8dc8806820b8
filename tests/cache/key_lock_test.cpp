// DiskCache::lock: one holder per key, among threads, processes and dead processes.
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "scratch_directory.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::ScratchDirectory;

CacheKey key_of(const std::string& source) {
  return CacheKeyBuilder().add("source", source).finish();
}

LockPatience patience(std::chrono::milliseconds limit) {
  return {.notice = 1h, .limit = limit, .on_wait = {}};
}

// Holds the lock of `key` until it is killed; the file `ready` tells that it does.
pid_t start_holder(const fs::path& root, const CacheKey& key, const fs::path& ready) {
  const pid_t child = test::start_child([&] {
    const DiskCache cache(root, nullptr);
    const KeyLock lock = cache.lock(key, patience(1min));
    test::write_text(ready, lock.is_held() ? "held" : lock.problem());
    ::pause();
    return 0;
  });
  while (!fs::exists(ready) || test::read_text(ready).empty()) {
    std::this_thread::sleep_for(1ms);
  }
  CHECK(test::read_text(ready) == "held");
  return child;
}

TEST_CASE(
    "single flight: a lock excludes other threads, and other keys of the same cache do not wait") {
  const ScratchDirectory scratch;
  const DiskCache cache(scratch.path(), nullptr);
  const KeyLock lock = cache.lock(key_of("a"), patience(1min));
  CHECK(lock.is_held());
  CHECK(lock.problem().empty());
  std::thread other([&] {
    const KeyLock refused = cache.lock(key_of("a"), patience(20ms));
    CHECK(!refused.is_held());
    CHECK(refused.problem().find("/locks/") != std::string::npos);
    CHECK(cache.lock(key_of("b"), patience(20ms)).is_held());
  });
  other.join();
}

TEST_CASE("single flight: a lock is free again when its holder lets it go") {
  const ScratchDirectory scratch;
  const DiskCache cache(scratch.path(), nullptr);
  for (int i = 0; i < 3; ++i) {
    KeyLock lock = cache.lock(key_of("a"), patience(1min));
    CHECK(lock.is_held());
    const KeyLock moved = std::move(lock);
    CHECK(moved.is_held());
  }
}

TEST_CASE("single flight: a lock excludes other processes, and a killed holder's is free at once") {
  const ScratchDirectory scratch;
  const DiskCache cache(scratch.path() / "cache", nullptr);
  const pid_t holder =
      start_holder(scratch.path() / "cache", key_of("a"), scratch.path() / "ready");
  CHECK(!cache.lock(key_of("a"), patience(20ms)).is_held());
  ::kill(holder, SIGKILL);
  CHECK(test::wait_for_child(holder) == 1000 + SIGKILL);
  CHECK(cache.lock(key_of("a"), patience(1min)).is_held());
}

TEST_CASE("single flight: who waits long is told once, and goes on without the lock at last") {
  const ScratchDirectory scratch;
  const DiskCache cache(scratch.path(), nullptr);
  const KeyLock lock = cache.lock(key_of("a"), patience(1min));
  int notices = 0;
  std::string where;
  const KeyLock refused = cache.lock(
      key_of("a"), {.notice = 5ms, .limit = 200ms, .on_wait = [&](std::string_view lock_file) {
                      ++notices;
                      where = lock_file;
                    }});
  CHECK(!refused.is_held());
  CHECK(notices == 1);
  CHECK(where == (scratch.path() / "locks" / key_of("a").digest.substr(0, 2)).string());
}

TEST_CASE(
    "single flight: sixteen processes of sixteen threads that make what is missing make it once") {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path() / "cache";
  const fs::path made = scratch.path() / "made";
  std::vector<pid_t> children;
  for (int process = 0; process < 16; ++process) {
    children.push_back(test::start_child([&] {
      DiskCache cache(root, nullptr);
      std::atomic<int> failures = 0;
      std::vector<std::thread> threads;
      for (int thread = 0; thread < 16; ++thread) {
        threads.emplace_back([&] {
          const KeyLock lock = cache.lock(key_of("a"), patience(1min));
          if (!cache.get(key_of("a")).entry) {
            std::ofstream(made, std::ios::app) << "x";
            std::this_thread::sleep_for(20ms);  // long enough for all to arrive
            failures += cache.put(key_of("a"), "", "payload") ? 0 : 1;
          }
          failures += lock.is_held() ? 0 : 1;
        });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
      return failures.load();
    }));
  }
  for (const pid_t child : children) {
    CHECK(test::wait_for_child(child) == 0);
  }
  CHECK(test::read_text(made) == "x");
}

TEST_CASE("single flight: where there can be no lock one goes on without, and is told why") {
  const ScratchDirectory scratch;
  CHECK(!DiskCache(std::nullopt, nullptr).lock(key_of("a"), patience(1min)).is_held());
  test::write_text(scratch.path() / "file", "");
  const KeyLock in_file =
      DiskCache(scratch.path() / "file", nullptr).lock(key_of("a"), patience(1min));
  CHECK(!in_file.is_held());
  CHECK(in_file.problem().find("Not a directory") != std::string::npos);
  const fs::path lock = scratch.path() / "cache/locks" / key_of("a").digest.substr(0, 2);
  fs::create_directories(lock.parent_path());
  REQUIRE(::mkfifo(lock.c_str(), 0600) == 0);
  const KeyLock fifo =
      DiskCache(scratch.path() / "cache", nullptr).lock(key_of("a"), patience(1min));
  CHECK(!fifo.is_held());
  CHECK(fifo.problem().find("regular file") != std::string::npos);
}

TEST_CASE("locks are private files that no listing of entries holds") {
  const ScratchDirectory scratch;
  const DiskCache cache(scratch.path() / "cache", nullptr);
  CHECK(cache.lock(key_of("a"), patience(1min)).is_held());
  struct stat status = {};
  const fs::path lock = scratch.path() / "cache/locks" / key_of("a").digest.substr(0, 2);
  REQUIRE(::stat(lock.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  REQUIRE(::stat(lock.parent_path().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  CHECK(cache.list().empty());
}

}  // namespace
}  // namespace attnjit
