// The cap of a cache directory's size, and the removal of what it does not need.
#include <chrono>
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

constexpr std::uint64_t kib = 1024;

CacheKey key_of(int number) {
  return CacheKeyBuilder().add("number", std::to_string(number)).finish();
}

CacheOptions capped(const fs::path& directory, std::uint64_t max_bytes) {
  CacheOptions options;
  options.directory = directory;
  options.max_bytes = max_bytes;
  return options;
}

void age(const fs::path& path, std::chrono::hours hours) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - hours);
}

std::chrono::seconds age_of(const fs::path& path) {
  return std::chrono::duration_cast<std::chrono::seconds>(fs::file_time_type::clock::now() -
                                                          fs::last_write_time(path));
}

fs::path path_of(const fs::path& root, const CacheKey& key) {
  return root / "v1" / key.digest.substr(0, 2) / key.digest.substr(2);
}

// `count` entries of about 10 KiB; entry i was used i hours before the one after the last.
void fill(const fs::path& root, int count) {
  DiskCache cache(root, nullptr);
  for (int i = 0; i < count; ++i) {
    REQUIRE(cache.put(key_of(i), "", std::string(10 * kib, 'x')));
    age(path_of(root, key_of(i)), std::chrono::hours(count - i + 2));
  }
}

std::uint64_t total_bytes(const DiskCache& cache) {
  std::uint64_t bytes = 0;
  for (const StoredEntry& entry : cache.list()) {
    bytes += entry.bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("bounded size: a put beyond the cap evicts what was not used for longest, to 90 %") {
  const ScratchDirectory scratch;
  fill(scratch.path(), 20);
  DiskCache cache(capped(scratch.path(), 150 * kib), nullptr);
  REQUIRE(cache.put(key_of(100), "", "new"));
  CHECK(total_bytes(cache) <= 135 * kib);
  CHECK(total_bytes(cache) > 124 * kib);
  for (int i = 0; i < 20; ++i) {
    CHECK(cache.find(key_of(i)).entry.has_value() == (i >= 7));
  }
  CHECK(cache.find(key_of(100)).entry.has_value());
}

TEST_CASE("bounded size: under the cap nothing is evicted") {
  const ScratchDirectory scratch;
  fill(scratch.path(), 20);
  DiskCache cache(capped(scratch.path(), 400 * kib), nullptr);
  REQUIRE(cache.put(key_of(100), "", "new"));
  CHECK(cache.list().size() == 21);
}

TEST_CASE("bounded size: a hit keeps an entry, and is written down once an hour") {
  const ScratchDirectory scratch;
  fill(scratch.path(), 20);
  const fs::path oldest = path_of(scratch.path(), key_of(0));
  DiskCache cache(capped(scratch.path(), 150 * kib), nullptr);
  CHECK(cache.get(key_of(0)).entry.has_value());
  CHECK(age_of(oldest) < 1min);
  const auto written = fs::last_write_time(oldest);
  CHECK(cache.get(key_of(0)).entry.has_value());
  CHECK(fs::last_write_time(oldest) == written);
  fs::last_write_time(oldest, written - 30min);
  CHECK(cache.get(key_of(0)).entry.has_value());
  CHECK(fs::last_write_time(oldest) == written - 30min);
  fs::last_write_time(oldest, written);
  REQUIRE(cache.put(key_of(100), "", "new"));
  CHECK(cache.find(key_of(0)).entry.has_value());
  CHECK_FALSE(cache.find(key_of(1)).entry.has_value());
}

TEST_CASE("bounded size: what was used since the session began is never evicted") {
  const ScratchDirectory scratch;
  DiskCache cache(capped(scratch.path(), 20 * kib), nullptr);
  for (int i = 0; i < 10; ++i) {
    REQUIRE(cache.put(key_of(i), "", std::string(10 * kib, 'x')));
  }
  CHECK(cache.list().size() == 10);
}

TEST_CASE(
    "bounded size: a clock that was wrong costs entries, never a wrong one, and no stuck file") {
  const ScratchDirectory scratch;
  fill(scratch.path(), 4);
  age(path_of(scratch.path(), key_of(2)), -1000h);  // written under a clock in the future
  DiskCache cache(capped(scratch.path(), 35 * kib), nullptr);
  REQUIRE(cache.put(key_of(100), "", "new"));
  CHECK_FALSE(cache.find(key_of(2)).entry.has_value());
  CHECK(cache.find(key_of(3)).entry.has_value());
  age(path_of(scratch.path(), key_of(3)), -1000h);
  CHECK(cache.get(key_of(3)).entry.has_value());
  CHECK(age_of(path_of(scratch.path(), key_of(3))) < 1min);
}

TEST_CASE("bounded size: 8 processes that put twice the cap end below it") {
  const ScratchDirectory scratch;
  constexpr std::uint64_t cap = 1000 * kib;
  std::vector<pid_t> children;
  for (int process = 0; process < 8; ++process) {
    children.push_back(test::start_child([&] {
      for (int i = 0; i < 25; ++i) {
        // A cache for each: a session's own entries would stay.
        DiskCache cache(capped(scratch.path(), cap), nullptr);
        const CacheKey key = key_of(100 * process + i);
        if (!cache.put(key, "", std::string(10 * kib, 'x'))) {
          return 1;
        }
        age(path_of(scratch.path(), key), 3h);
      }
      return 0;
    }));
  }
  for (const pid_t child : children) {
    CHECK(test::wait_for_child(child) == 0);
  }
  DiskCache cache(capped(scratch.path(), cap), nullptr);
  REQUIRE(cache.put(key_of(9999), "", "last"));
  CHECK(total_bytes(cache) <= cap);
  CHECK(total_bytes(cache) > cap / 2);
  cache.flush_counters();
  CHECK(read_statistics(scratch.path()).evictions >= 100);
}

TEST_CASE("bounded size: a put sweeps temporary files of more than a day, and no younger ones") {
  const ScratchDirectory scratch;
  fill(scratch.path(), 1);
  const fs::path shard = path_of(scratch.path(), key_of(0)).parent_path();
  for (const std::string name : {".tmp-oldone", ".tmp-newone"}) {
    test::write_text(shard / name, "unfinished");
  }
  age(shard / ".tmp-oldone", 25h);
  age(shard / ".tmp-newone", 23h);
  REQUIRE(DiskCache(scratch.path(), nullptr).put(key_of(1), "", "x"));
  CHECK_FALSE(fs::exists(shard / ".tmp-oldone"));
  CHECK(fs::exists(shard / ".tmp-newone"));
}

TEST_CASE("garbage: a dry run reports what a run removes, and changes nothing") {
  const ScratchDirectory scratch;
  fill(scratch.path(), 10);
  const fs::path shard = path_of(scratch.path(), key_of(0)).parent_path();
  test::write_text(shard / (std::string(30, 'a') + ".bad"), "damaged");
  test::write_text(shard / ".tmp-abcdef", "unfinished");
  age(shard / ".tmp-abcdef", 48h);
  for (const std::string tree : {"v0", "v2", "vault"}) {
    fs::create_directories(scratch.path() / tree / "3f");
    test::write_text(scratch.path() / tree / "3f" / "entry", "x");
  }
  const DiskCache cache(scratch.path(), nullptr);
  for (const CleanupMode mode : {CleanupMode::report, CleanupMode::remove}) {
    const CleanupReport report = cache.collect_garbage(50 * kib, mode);
    CHECK(report.is_done);
    CHECK(report.problem.empty());
    CHECK(report.evicted.count == 6);
    CHECK(report.kept_entries == 4);
    CHECK(report.temporary.count == 1);
    CHECK(report.quarantined.count == 1);
    CHECK(report.quarantined.bytes == 7);
    CHECK(report.old_trees == std::vector<std::string>{"v0"});
    CHECK(cache.list().size() == (mode == CleanupMode::report ? 10 : 4));
    CHECK(fs::exists(scratch.path() / "v0") == (mode == CleanupMode::report));
  }
  CHECK(fs::exists(scratch.path() / "v2/3f/entry"));
  CHECK(fs::exists(scratch.path() / "vault/3f/entry"));
  CHECK_FALSE(fs::exists(shard / ".tmp-abcdef"));
}

TEST_CASE("garbage: of a cache that is not there nothing is removed and nothing made") {
  const ScratchDirectory scratch;
  const DiskCache cache(scratch.path() / "none", nullptr);
  CHECK(cache.collect_garbage(1, CleanupMode::remove).is_done);
  CHECK_FALSE(fs::exists(scratch.path() / "none"));
}

}  // namespace attnjit
