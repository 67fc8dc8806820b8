#include "attnjit/cache_entry.hpp"

#include <cstdint>
#include <random>
#include <string>

#include "catch.hpp"

namespace attnjit {
namespace {

const CacheEntry small_entry = {.key_text = "source 1\nx\n",
                                .metadata = R"({"registers":40})",
                                .payload =
                                    "\x7f"
                                    "ELF"};

// Checksums in this file were computed with xxHash's Python binding, not with this library.
std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string integer_bytes(std::uint64_t value) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) {
    bytes += static_cast<char>((value >> shift) & 0xff);
  }
  return bytes;
}

std::string problem_of(std::string_view bytes) {
  std::string problem;
  CHECK_FALSE(decode_entry(bytes, &problem).has_value());
  return problem;
}

}  // namespace

TEST_CASE("an entry decodes to what was encoded") {
  CHECK(decode_entry(encode_entry(small_entry), nullptr) == small_entry);
}

TEST_CASE("empty parts and parts of any bytes survive the round trip") {
  const CacheEntry empty;
  CHECK(decode_entry(encode_entry(empty), nullptr) == empty);
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) {
    all_bytes += static_cast<char>(byte);
  }
  const CacheEntry entry = {.key_text = all_bytes, .metadata = "", .payload = all_bytes};
  CHECK(decode_entry(encode_entry(entry), nullptr) == entry);
}

TEST_CASE("version 1 is laid out as the format description says") {
  const std::string bytes = encode_entry({.key_text = "key", .metadata = "m", .payload = "pp"});
  const std::string expected(
      "ATTNJIT\x1a"
      "\x01\0\0\0"
      "\x03\0\0\0\0\0\0\0"
      "\x01\0\0\0\0\0\0\0"
      "\x02\0\0\0\0\0\0\0"
      "keympp",
      42);
  CHECK(bytes.substr(0, 42) == expected);
  CHECK(bytes.substr(42) == bytes_of_hex("b2a0271ffb62eaf79433f83d2c2db3fa"));
}

TEST_CASE("self-describing entry: an entry cut off at any byte is refused") {
  const std::string bytes = encode_entry(small_entry);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(problem_of(bytes.substr(0, size)).empty());
  }
}

TEST_CASE("self-describing entry: an entry with any one bit flipped is refused") {
  const std::string bytes = encode_entry(small_entry);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    CHECK_FALSE(problem_of(flipped).empty());
  }
}

TEST_CASE("bytes after an entry, or a second entry, are refused") {
  const std::string bytes = encode_entry(small_entry);
  CHECK_FALSE(problem_of(bytes + std::string(1, '\0')).empty());
  CHECK_FALSE(problem_of(bytes + bytes).empty());
}

TEST_CASE("an unknown format version is refused by its number") {
  std::string bytes = encode_entry(small_entry);
  bytes[8] = 2;
  CHECK(problem_of(bytes).find("format version 2") != std::string::npos);
}

TEST_CASE("bytes of another kind are refused") {
  CHECK(problem_of("").find("does not begin") != std::string::npos);
  CHECK(problem_of(std::string(1000, '\0')).find("does not begin") != std::string::npos);
  CHECK(problem_of("\x7f"
                   "ELF and more, but never an entry")
            .find("does not begin") != std::string::npos);
}

TEST_CASE(
    "self-describing entry: random bytes behind a right beginning never decode and never read out "
    "of bounds") {
  std::mt19937 random(1);
  const std::string beginning = encode_entry(small_entry).substr(0, 12);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = beginning;
    const std::size_t size = random() % 120;
    for (std::size_t i = 0; i < size; ++i) {
      // Mostly 0 and 255: lengths that are small, huge, or wrap around when added.
      const std::uint32_t choice = random() % 4;
      bytes += static_cast<char>(choice == 0 ? random() : (choice == 1 ? 255U : 0U));
    }
    REQUIRE_FALSE(decode_entry(bytes, nullptr).has_value());
  }
}

TEST_CASE("a header cut off under a right checksum is refused") {
  const std::string bytes =
      std::string("ATTNJIT\x1a\x01\0\0\0", 12) + bytes_of_hex("0a168bb37d4e6b5353fd2970303cc99e");
  CHECK(problem_of(bytes).find("cut off") != std::string::npos);
}

TEST_CASE("self-describing entry: lengths that lie under a right checksum are refused") {
  struct Lie {
    std::uint64_t key_text, metadata, payload;
    std::string checksum;
  };
  constexpr std::uint64_t wrap = 0;  // wrap - n is 2^64 - n
  const Lie lies[] = {
      {3, 1, 1, "dd41bb29bb842dde6397a43a7f6b14e7"},                 // too little
      {3, 1, 3, "4653fc4e60d806c895c95ce819a408a8"},                 // too much
      {wrap - 1, 1, 2, "975fead835aa9b370a3b6f2e835b3e6c"},          // far too much
      {wrap - 3, wrap - 2, 11, "486684c6b1143f5f9c2a12ac178ee093"},  // 6 after wrapping
      {3, wrap - 2, 5, "420c7b931741e9d29dd7dad548e4eaa2"},          // 6 after wrapping
  };
  for (const Lie& lie : lies) {
    const std::string bytes = std::string("ATTNJIT\x1a\x01\0\0\0", 12) +
                              integer_bytes(lie.key_text) + integer_bytes(lie.metadata) +
                              integer_bytes(lie.payload) + "keympp" + bytes_of_hex(lie.checksum);
    CHECK(problem_of(bytes).find("lengths") != std::string::npos);
  }
}

}  // namespace attnjit
