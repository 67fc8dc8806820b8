#include "attnjit/cache_key.hpp"

#include <stdexcept>
#include <string>

#include "catch.hpp"

namespace attnjit {

TEST_CASE("complete key: a key's text lists its sections with tag and length") {
  const CacheKey key = CacheKeyBuilder().add("source", "int x;").add("options", "").finish();
  CHECK(key.text == "source 6\nint x;\noptions 0\n\n");
}

TEST_CASE("complete key: a fixed key keeps its digest for ever") {
  // Computed with xxHash's Python binding from the 33 bytes of the text.
  const CacheKey key = CacheKeyBuilder().add("source", "int x;").add("target", "sm_90a").finish();
  CHECK(key.digest == "ded254344d27daf4b9c574e039d084f7");
}

TEST_CASE("complete key: moving a byte from one section to the next makes another key") {
  const CacheKey left = CacheKeyBuilder().add("a", "ab").add("a", "c").finish();
  const CacheKey right = CacheKeyBuilder().add("a", "a").add("a", "bc").finish();
  CHECK(left.text != right.text);
  CHECK(left.digest != right.digest);
}

TEST_CASE("complete key: bytes that look like a section do not pass for one") {
  const CacheKey two = CacheKeyBuilder().add("a", "x").add("b", "y").finish();
  const CacheKey one = CacheKeyBuilder().add("a", "x\nb 1\ny").finish();
  CHECK(two.text != one.text);
  CHECK(two.digest != one.digest);
}

TEST_CASE("complete key: an empty section, a tag and the order of sections are part of the key") {
  const CacheKey base = CacheKeyBuilder().add("a", "1").add("b", "2").finish();
  CHECK(CacheKeyBuilder().add("b", "2").add("a", "1").finish().digest != base.digest);
  CHECK(CacheKeyBuilder().add("a", "1").add("c", "2").finish().digest != base.digest);
  CHECK(CacheKeyBuilder().add("a", "1").add("b", "2").add("c", "").finish().digest != base.digest);
}

TEST_CASE("sections may hold any bytes, zero among them") {
  const std::string with_zero("a\0b", 3);
  const CacheKey key = CacheKeyBuilder().add("bytes", with_zero).finish();
  CHECK(key.text == "bytes 3\n" + with_zero + "\n");
  CHECK(key.digest != CacheKeyBuilder().add("bytes", "a").finish().digest);
}

TEST_CASE("a tag that could be mistaken for a length is refused") {
  CHECK_THROWS_AS(CacheKeyBuilder().add("", "x"), std::invalid_argument);
  CHECK_THROWS_AS(CacheKeyBuilder().add("a 1", "x"), std::invalid_argument);
  CHECK_THROWS_AS(CacheKeyBuilder().add("a\nb", "x"), std::invalid_argument);
}

}  // namespace attnjit
