// DiskCache and entry_file.cpp under threads, processes and SIGKILL. Writers store payloads of
// different lengths and fillings under one key, so that a mixture of two would show.
#include <atomic>
#include <chrono>
#include <csignal>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "scratch_directory.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using test::ScratchDirectory;

CacheKey shared_key() {
  return CacheKeyBuilder().add("source", "shared").finish();
}

std::string payload_of(int writer) {
  return std::string(static_cast<std::size_t>(20'000 + 7'000 * writer),
                     static_cast<char>('a' + writer));
}

bool is_some_writers(const CacheEntry& entry) {
  return entry.key_text == shared_key().text &&
         entry.payload == payload_of(std::stoi(entry.metadata));
}

// Puts and gets in turn; false if one get gave anything but a whole entry of one writer.
bool put_and_get(DiskCache& cache, int writer, int rounds) {
  const CacheKey key = shared_key();
  const std::string payload = payload_of(writer);
  for (int round = 0; round < rounds; ++round) {
    if (!cache.put(key, std::to_string(writer), payload)) {
      return false;
    }
    for (int read = 0; read < 10; ++read) {
      const CacheLookup lookup = cache.get(key);
      if (!lookup.entry || !is_some_writers(*lookup.entry)) {
        return false;
      }
    }
  }
  return true;
}

// For ever: the caller is killed.
[[noreturn]] void put_without_end(const fs::path& root) {
  DiskCache cache(root, nullptr);
  for (int writer = 0;; writer = (writer + 1) % 4) {
    cache.put(shared_key(), std::to_string(writer), payload_of(writer));
  }
}

}  // namespace

TEST_CASE("atomic publish: threads that put and get one key never see a bad entry") {
  const ScratchDirectory scratch;
  std::atomic<int> warnings = 0;
  DiskCache cache(scratch.path(), [&](std::string_view) { ++warnings; });
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 8; ++writer) {
    threads.emplace_back([&, writer] { good += put_and_get(cache, writer, 15) ? 1 : 0; });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(good == 8);
  CHECK(warnings == 0);
  CHECK(test::count_temporary_files(scratch.path()) == 0);
}

TEST_CASE("atomic publish: processes that put and get one key never see a bad entry") {
  const ScratchDirectory scratch;
  std::vector<pid_t> children;
  for (int writer = 0; writer < 6; ++writer) {
    children.push_back(test::start_child([&] {
      DiskCache cache(scratch.path() / "made by all at once", nullptr);
      return put_and_get(cache, writer, 15) ? 0 : 1;
    }));
  }
  for (const pid_t child : children) {
    CHECK(test::wait_for_child(child) == 0);
  }
  CHECK(test::count_temporary_files(scratch.path()) == 0);
}

TEST_CASE("never fatal: threads that all fail to put give one warning between them") {
  std::atomic<int> warnings = 0;
  DiskCache cache("/proc/attnjit-cache", [&](std::string_view) { ++warnings; });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { cache.put(shared_key(), "", "cubin"); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(warnings == 1);
}

TEST_CASE(
    "atomic publish: 1,000 writers killed while they publish leave no entry that loads wrong") {
  const ScratchDirectory scratch;
  const DiskCache cache(scratch.path(), nullptr);
  std::mt19937 random(1);
  int hits = 0;
  int bad = 0;
  for (int round = 0; round < 1000; ++round) {
    const pid_t child = test::start_child([&]() -> int { put_without_end(scratch.path()); });
    ::usleep(static_cast<useconds_t>(random() % 4000));
    ::kill(child, SIGKILL);
    CHECK(test::wait_for_child(child) == 1000 + SIGKILL);
    const CacheLookup lookup = cache.get(shared_key());
    hits += lookup.entry ? 1 : 0;
    bad += lookup.entry ? !is_some_writers(*lookup.entry) : lookup.reason != MissReason::absent;
  }
  CHECK(bad == 0);
  CHECK(hits > 0);
  CHECK(cache.list().size() == 1);  // temporary files of the killed are no entries
  for (const auto& file : fs::recursive_directory_iterator(scratch.path())) {
    if (file.path().filename().string().starts_with(".tmp-")) {
      fs::last_write_time(file.path(), fs::file_time_type::clock::now() - std::chrono::hours(25));
    }
  }
  CHECK(cache.collect_garbage(unlimited_cache_bytes, CleanupMode::remove).is_done);
  CHECK(test::count_temporary_files(scratch.path()) == 0);
}

}  // namespace attnjit
