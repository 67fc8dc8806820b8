// What a cache counts, and how it is kept between processes.
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "attnjit/cache_statistics.hpp"
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

std::uint64_t misses(const CacheStatistics& statistics, MissReason reason) {
  return statistics.misses[static_cast<std::size_t>(reason)];
}

}  // namespace

TEST_CASE("observability: hits, misses, puts, bytes and saved time are counted once each") {
  const ScratchDirectory scratch;
  {
    DiskCache cache(scratch.path(), nullptr);
    CHECK_FALSE(cache.get(key_of("a")).entry.has_value());
    CHECK_FALSE(cache.find(key_of("a")).entry.has_value());       // counts nothing
    CHECK(read_statistics(scratch.path()) == CacheStatistics{});  // nothing on the hot path
    REQUIRE(cache.put(key_of("a"), "", "12345"));
    CHECK(cache.get(key_of("a")).entry.has_value());
    CHECK(cache.get(key_of("a")).entry.has_value());
    CHECK(cache.probe(key_of("b")).size() == 1);  // counts nothing
    cache.count_saved_compile(1500us);
    fs::resize_file(cache.list()[0].path, 10);
    CHECK(cache.get(key_of("a")).reason == MissReason::corrupt);
  }
  const CacheStatistics statistics = read_statistics(scratch.path());
  CHECK(statistics.records == 1);
  CHECK(statistics.hits == 2);
  CHECK(statistics.bytes_read == 10);
  CHECK(misses(statistics, MissReason::absent) == 1);
  CHECK(misses(statistics, MissReason::corrupt) == 1);
  CHECK(statistics.puts == 1);
  CHECK(statistics.failed_puts == 0);
  CHECK(statistics.quarantined == 1);
  CHECK(statistics.saved_microseconds == 1500);
}

TEST_CASE("observability: counters flushed by call are not flushed again") {
  const ScratchDirectory scratch;
  {
    const DiskCache cache(scratch.path(), nullptr);
    cache.get(key_of("a"));
    cache.flush_counters();
    cache.flush_counters();
    CHECK(read_statistics(scratch.path()).records == 1);
  }
  CHECK(read_statistics(scratch.path()).records == 1);
}

TEST_CASE("observability: a process that is killed loses no put and at most 255 lookups") {
  const ScratchDirectory scratch;
  const pid_t child = test::start_child([&] {
    auto* cache = new DiskCache(scratch.path(), nullptr);  // never destroyed
    cache->put(key_of("a"), "", "12345");
    for (int i = 0; i < 600; ++i) {
      cache->get(key_of("a"));
    }
    cache->put(key_of("b"), "", "12345");
    cache->get(key_of("a"));
    ::raise(SIGKILL);
    return 0;
  });
  test::wait_for_child(child);
  const CacheStatistics statistics = read_statistics(scratch.path());
  CHECK(statistics.records == 1);
  CHECK(statistics.puts == 2);
  CHECK(statistics.hits == 600);
}

TEST_CASE("observability: what is counted before the directory is made is kept until then") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path() / "own", nullptr);
  for (int i = 0; i < 300; ++i) {
    cache.get(key_of("a"));
  }
  cache.put(key_of("a"), "", "12345");
  CHECK(misses(read_statistics(scratch.path() / "own"), MissReason::absent) == 300);
}

TEST_CASE("observability: processes add up, and a directory that is not there is not made") {
  const ScratchDirectory scratch;
  std::vector<pid_t> children;
  for (int process = 0; process < 16; ++process) {
    children.push_back(test::start_child([&] {
      for (int i = 0; i < 10; ++i) {
        const DiskCache cache(scratch.path(), nullptr);
        cache.get(key_of("a"));
      }
      return 0;
    }));
  }
  for (const pid_t child : children) {
    CHECK(test::wait_for_child(child) == 0);
  }
  CHECK(read_statistics(scratch.path()).records == 160);
  CHECK(misses(read_statistics(scratch.path()), MissReason::absent) == 160);
  DiskCache(scratch.path() / "none", nullptr).get(key_of("a"));
  CHECK_FALSE(fs::exists(scratch.path() / "none"));
}

TEST_CASE("observability: a torn record, foreign text and fields of later versions do no harm") {
  const ScratchDirectory scratch;
  fs::create_directories(scratch.path() / "stats");
  test::write_text(scratch.path() / "stats/3f",
                   "attnjit-counters 1 records=1 hits=5 end\n"
                   "attnjit-counters 1 records=1 hit\n"
                   "attnjit-counters 1 records=1 hits=2 unheard_of=7 = hits end\n"
                   "\n"
                   "attnjit-counters 2 records=1 hits=100 end\n"
                   "attnjit-counters 1 records=1 hits=3 end");
  test::write_text(scratch.path() / "stats/notes", "attnjit-counters 1 records=1 hits=9 end\n");
  CHECK(read_statistics(scratch.path()).hits == 7);
  CHECK(read_statistics(scratch.path()).records == 2);
}

TEST_CASE("observability: records that have grown large are summed up, and none is lost") {
  const ScratchDirectory scratch;
  fs::create_directories(scratch.path() / "stats");
  std::string records;
  for (int i = 0; i < 2000; ++i) {
    records += "attnjit-counters 1 records=1 hits=2 end\n";
  }
  test::write_text(scratch.path() / "stats/00", records);
  test::write_text(scratch.path() / "stats/01", records);
  const DiskCache cache(scratch.path(), nullptr);
  cache.collect_garbage(unlimited_cache_bytes, CleanupMode::remove);
  const CacheStatistics statistics = read_statistics(scratch.path());
  CHECK(statistics.hits == 8000);
  CHECK(statistics.records == 4000);
  CHECK_FALSE(fs::exists(scratch.path() / "stats/00"));
}

}  // namespace attnjit
