#include "content_digest.hpp"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace attnjit {

ContentDigest content_digest(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  ContentDigest digest;
  static_assert(sizeof canonical.digest == sizeof digest);
  std::memcpy(digest.data(), canonical.digest, sizeof digest);
  return digest;
}

std::string to_hex(const ContentDigest& digest) {
  constexpr std::string_view hex_digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const char byte : digest) {
    const auto value = static_cast<unsigned char>(byte);
    text += hex_digits[value >> 4];
    text += hex_digits[value & 15];
  }
  return text;
}

}  // namespace attnjit
