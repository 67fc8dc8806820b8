#include "attnjit/disk_cache.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/stat.h>

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

void no_warning(std::string_view message) {
  FAIL("unexpected warning: " << std::string(message));
}

int mode_of(const fs::path& path) {
  return static_cast<int>(fs::status(path).permissions());
}

}  // namespace

TEST_CASE("what was put is got, with its key and metadata") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path() / "cache", no_warning);
  const CacheKey key = key_of("kernel");
  CHECK(cache.get(key).reason == MissReason::absent);
  REQUIRE(cache.put(key, R"({"registers":40})", "cubin"));
  const CacheLookup lookup = cache.get(key);
  REQUIRE(lookup.entry.has_value());
  CHECK(*lookup.entry == CacheEntry{key.text, R"({"registers":40})", "cubin"});
  CHECK(DiskCache(scratch.path() / "cache", no_warning).get(key).entry == lookup.entry);
}

TEST_CASE("a second put replaces the first") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), no_warning);
  const CacheKey key = key_of("kernel");
  REQUIRE(cache.put(key, "1", "old"));
  REQUIRE(cache.put(key, "2", "new"));
  REQUIRE(cache.get(key).entry.has_value());
  CHECK(cache.get(key).entry->payload == "new");
  CHECK(cache.list().size() == 1);
}

TEST_CASE("an entry lies in v1 under two and thirty digits of its digest") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), no_warning);
  const CacheKey key = key_of("kernel");
  REQUIRE(cache.put(key, "", "cubin"));
  CHECK(test::read_text(path_of(scratch.path(), key)) ==
        encode_entry({.key_text = key.text, .metadata = "", .payload = "cubin"}));
}

TEST_CASE("the cache's directories are its owner's alone whatever the umask") {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path() / "parent" / "cache";
  const CacheKey key = key_of("kernel");
  for (const mode_t mask : {mode_t{0000}, mode_t{0077}}) {
    const mode_t before = ::umask(mask);
    const bool stored = DiskCache(root, no_warning).put(key, "", "cubin");
    ::umask(before);
    REQUIRE(stored);
    CHECK(mode_of(root) == 0700);
    CHECK(mode_of(root / "v1") == 0700);
    CHECK(mode_of(path_of(root, key)) == 0600);
    fs::remove_all(scratch.path() / "parent");
  }
}

TEST_CASE(
    "self-describing entry: entries whose file names were swapped are misses of another key") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), no_warning);
  const CacheKey left = key_of("left");
  const CacheKey right = key_of("right");
  REQUIRE(cache.put(left, "", "left cubin"));
  REQUIRE(cache.put(right, "", "right cubin"));
  fs::rename(path_of(scratch.path(), left), scratch.path() / "aside");
  fs::rename(path_of(scratch.path(), right), path_of(scratch.path(), left));
  fs::rename(scratch.path() / "aside", path_of(scratch.path(), right));
  for (const CacheKey& key : {left, right}) {
    const CacheLookup lookup = cache.get(key);
    CHECK_FALSE(lookup.entry.has_value());
    CHECK(lookup.reason == MissReason::key_differs);
    CHECK(lookup.detail.find(path_of(scratch.path(), key).string()) != std::string::npos);
  }
}

TEST_CASE("self-describing entry: two keys with one digest never share a payload") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), no_warning);
  const CacheKey first = key_of("first");
  const CacheKey colliding = {.text = key_of("second").text, .digest = first.digest};
  REQUIRE(cache.put(first, "", "first cubin"));
  CHECK(cache.get(colliding).reason == MissReason::key_differs);
  REQUIRE(cache.put(colliding, "", "second cubin"));
  CHECK(cache.get(first).reason == MissReason::key_differs);
}

TEST_CASE(
    "self-describing entry: a damaged entry is a miss with its reason, and the next put repairs "
    "it") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), no_warning);
  const CacheKey key = key_of("kernel");
  const fs::path path = path_of(scratch.path(), key);
  const std::string whole = encode_entry({.key_text = key.text, .metadata = "", .payload = "x"});
  std::string other_version = whole;
  other_version[8] = 2;
  struct Damage {
    std::string bytes;
    MissReason reason;
  };
  for (const Damage& damage :
       {Damage{"", MissReason::corrupt},
        Damage{whole.substr(0, whole.size() - 1), MissReason::corrupt},
        Damage{whole + "x", MissReason::corrupt}, Damage{other_version, MissReason::version},
        Damage{other_version.substr(0, 12), MissReason::version}}) {
    REQUIRE(cache.put(key, "", "x"));
    test::write_text(path, damage.bytes);
    const CacheLookup lookup = cache.get(key);
    CHECK_FALSE(lookup.entry.has_value());
    CHECK(lookup.reason == damage.reason);
    CHECK(lookup.detail.find(path.string()) != std::string::npos);
    REQUIRE(cache.put(key, "", "x"));
    CHECK(cache.get(key).entry.has_value());
  }
}

TEST_CASE(
    "a directory in an entry's place is a miss that the next put repairs, and is kept aside") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), no_warning);
  const CacheKey key = key_of("kernel");
  const fs::path path = path_of(scratch.path(), key);
  for (const bool is_empty : {true, false}) {
    fs::remove(path);
    fs::create_directories(path);
    if (!is_empty) {
      test::write_text(path / "precious", "kept");
    }
    CHECK_FALSE(cache.get(key).entry.has_value());
    REQUIRE(cache.put(key, "1", "cubin"));
    REQUIRE(cache.get(key).entry.has_value());
    CHECK(cache.list().size() == 1);
  }
  int kept = 0;
  for (const auto& entry : fs::directory_iterator(path.parent_path())) {
    kept += fs::exists(entry.path() / "precious") ? 1 : 0;
  }
  CHECK(kept == 1);
}

TEST_CASE(
    "self-describing entry: a file changed in any byte or cut off at any byte is a miss that a put "
    "repairs") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), no_warning);
  const CacheKey key = key_of("kernel");
  REQUIRE(cache.put(key, "m", "cubin"));
  const std::string whole = test::read_text(path_of(scratch.path(), key));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(~changed[i]);
    for (const std::string& damaged : {changed, whole.substr(0, i)}) {
      test::write_text(path_of(scratch.path(), key), damaged);
      REQUIRE_FALSE(cache.get(key).entry.has_value());
      REQUIRE(cache.put(key, "m", "cubin"));
      REQUIRE(test::read_text(path_of(scratch.path(), key)) == whole);
    }
  }
}

TEST_CASE("list finds every entry in order of digest and nothing else") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), no_warning);
  CHECK(cache.list().empty());
  std::vector<std::string> digests;
  for (int i = 0; i < 40; ++i) {
    const CacheKey key = key_of(std::to_string(i));
    REQUIRE(cache.put(key, "", "cubin"));
    digests.push_back(key.digest);
  }
  std::sort(digests.begin(), digests.end());
  const fs::path tree = scratch.path() / "v1";
  const fs::path shard = tree / digests[0].substr(0, 2);
  test::write_text(shard / ".tmp-a1b2c3", "unfinished");
  test::write_text(shard / "README", "foreign");
  test::write_text(shard / std::string(30, 'A'), "capital letters");
  test::write_text(shard / std::string(31, 'a'), "one digit too many");
  test::write_text(tree / std::string(30, 'd'), "not in a shard");
  fs::create_directories(tree / "xyz");
  test::write_text(tree / "xyz" / std::string(30, 'e'), "not a shard");
  test::write_text(tree / "0f0", "foreign");

  const std::vector<StoredEntry> entries = cache.list();
  REQUIRE(entries.size() == digests.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    CHECK(entries[i].digest == digests[i]);
    CHECK(entries[i].bytes == fs::file_size(entries[i].path));
    const CacheLookup lookup = read_entry(entries[i].path);
    CHECK((lookup.entry && lookup.entry->payload == "cubin"));
  }
}

TEST_CASE("list names what is no file in an entry's place, and it reads as a miss") {
  const ScratchDirectory scratch;
  const fs::path shard = scratch.path() / "v1" / "00";
  fs::create_directories(shard / std::string(30, 'b'));
  fs::create_symlink("elsewhere", shard / std::string(30, 'c'));
  const std::vector<StoredEntry> entries = DiskCache(scratch.path(), no_warning).list();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].digest == "00" + std::string(30, 'b'));
  CHECK(entries[1].digest == "00" + std::string(30, 'c'));
  for (const StoredEntry& entry : entries) {
    CHECK(entry.bytes == 0);
    CHECK(read_entry(entry.path).reason == MissReason::unreadable);
  }
}

TEST_CASE(
    "portable names: a cache directory may have blanks, newlines and CJK characters in its name") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path() / "two words" / "line\nbreak" / "缓存 キャッシュ", no_warning);
  REQUIRE(cache.put(key_of("kernel"), "", "cubin"));
  CHECK(cache.get(key_of("kernel")).entry.has_value());
  CHECK(cache.list().size() == 1);
}

TEST_CASE("portable names: a name below the directory has at most 36 bytes, of hex digits and vN") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), no_warning);
  REQUIRE(cache.put(key_of("kernel"), "", "cubin"));
  const std::string name = cache.list()[0].path.lexically_relative(scratch.path()).string();
  CHECK(name.size() == 36);
  CHECK(name.substr(2).find_first_not_of("0123456789abcdef/") == std::string::npos);
  CHECK(name.starts_with("v1/"));
}

TEST_CASE("payloads of zero bytes and of several megabytes are kept") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), no_warning);
  for (const std::size_t size : {std::size_t{0}, std::size_t{5'000'001}}) {
    const CacheKey key = key_of(std::to_string(size));
    const std::string payload(size, '\xee');
    REQUIRE(cache.put(key, "", payload));
    REQUIRE(cache.get(key).entry.has_value());
    CHECK((cache.get(key).entry->payload == payload));
  }
}

TEST_CASE("a digest that could name a file outside the cache is refused") {
  const ScratchDirectory scratch;
  DiskCache cache(scratch.path(), no_warning);
  for (const std::string digest : {"", "../../../../etc/passwd", "0123456789ABCDEF0123456789ABCDEF",
                                   "0123456789abcdef0123456789abcde"}) {
    CHECK_THROWS_AS(cache.get({.text = "x", .digest = digest}), std::invalid_argument);
    CHECK_THROWS_AS(cache.put({.text = "x", .digest = digest}, "", ""), std::invalid_argument);
  }
}

TEST_CASE("every miss reason has its name") {
  CHECK(to_string(MissReason::absent) == "absent");
  CHECK(to_string(MissReason::disabled) == "disabled");
  CHECK(to_string(MissReason::unreadable) == "unreadable");
  CHECK(to_string(MissReason::corrupt) == "corrupt");
  CHECK(to_string(MissReason::version) == "version");
  CHECK(to_string(MissReason::key_differs) == "key_differs");
  CHECK(to_string(MissReason::untrusted) == "untrusted");
  for (std::size_t i = 0; i < miss_reasons.size(); ++i) {
    CHECK(static_cast<std::size_t>(miss_reasons[i]) == i);
  }
}

}  // namespace attnjit
