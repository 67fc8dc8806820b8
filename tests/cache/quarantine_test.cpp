// What becomes of a damaged entry.
#include <string>

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

int count_bad(const fs::path& root) {
  int count = 0;
  for (const auto& file : fs::recursive_directory_iterator(root)) {
    count += file.path().filename().string().ends_with(".bad") ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("quarantine: a damaged entry is put aside once, and the put that follows replaces it") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), nullptr);
  REQUIRE(cache.put(key_of("a"), "", "cubin"));
  const fs::path path = cache.list()[0].path;
  test::write_text(path, "damaged");
  CHECK(cache.get(key_of("a")).reason == MissReason::corrupt);
  CHECK(cache.get(key_of("a")).reason == MissReason::absent);
  CHECK(test::read_text(path.string() + ".bad") == "damaged");
  CHECK(cache.list().empty());
  REQUIRE(cache.put(key_of("a"), "", "cubin"));
  CHECK(cache.get(key_of("a")).entry.has_value());
  CHECK(count_bad(scratch.path()) == 1);
}

TEST_CASE("quarantine: only what is damaged is put aside, and only by a get") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), nullptr);
  REQUIRE(cache.put(key_of("a"), "", "cubin"));
  const fs::path path = cache.list()[0].path;
  std::string bytes = test::read_text(path);
  bytes[8] = 2;
  test::write_text(path, bytes);
  CHECK(cache.get(key_of("a")).reason == MissReason::version);
  test::write_text(path, encode_entry({.key_text = "b", .metadata = "", .payload = ""}));
  CHECK(cache.get(key_of("a")).reason == MissReason::key_differs);
  test::write_text(path, "damaged");
  CHECK(cache.probe(key_of("a"))[0].lookup.reason == MissReason::corrupt);
  CHECK(read_entry(path).reason == MissReason::corrupt);
  CHECK(count_bad(scratch.path()) == 0);
}

TEST_CASE("quarantine: a shard keeps two damaged entries at most") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), nullptr);
  int damaged = 0;
  for (int i = 0; damaged < 5; ++i) {
    const CacheKey key = key_of(std::to_string(i));
    if (!key.digest.starts_with("0")) {
      continue;
    }
    ++damaged;
    REQUIRE(cache.put(key, "", "cubin"));
    // Into one shard, whatever the digest: the key is then read from there.
    const fs::path shard = scratch.path() / "v1" / key.digest.substr(0, 2);
    for (const char filler : {'a', 'b'}) {
      test::write_text(shard / (std::string(30, filler) + ".bad"), "damaged before");
    }
    test::write_text(shard / key.digest.substr(2), "damaged");
    CHECK(cache.get(key).reason == MissReason::corrupt);
    CHECK(cache.get(key).reason == MissReason::absent);
    CHECK_FALSE(fs::exists(shard / (key.digest.substr(2) + ".bad")));
  }
}

TEST_CASE("quarantine: a caller may put aside what is whole and of no use") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), nullptr);
  REQUIRE(cache.put(key_of("a"), "", "no cubin"));
  CHECK(cache.quarantine(cache.list()[0]));
  CHECK(cache.get(key_of("a")).reason == MissReason::absent);
  CHECK(count_bad(scratch.path()) == 1);
}

}  // namespace attnjit
