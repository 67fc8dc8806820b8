// XXH3-128 of bytes: names entries and proves that a file is whole. Not cryptographic: it guards
// against accidents, not against an attacker who can write to the cache. Private; thread-safe.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace attnjit {

using ContentDigest = std::array<char, 16>;

// In xxHash's canonical (big-endian) byte order.
ContentDigest content_digest(std::string_view bytes);

// 32 lower-case hex digits.
std::string to_hex(const ContentDigest& digest);

}  // namespace attnjit
