// A cache key: the full text of everything that shaped a payload, and its 128-bit digest. Two equal
// digests with different texts are told apart by the text. Plain value, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace attnjit {

struct CacheKey {
  std::string text;    // tagged, length-prefixed sections; readable
  std::string digest;  // 32 lower-case hex digits, XXH3-128 of text

  friend bool operator==(const CacheKey&, const CacheKey&) = default;
};

// The key of a text, as an entry has kept it.
CacheKey key_of_text(std::string text);

// Builds the text section by section; the order of calls is part of the key.
class CacheKeyBuilder {
 public:
  // Appends "<tag> <length in bytes>\n<bytes>\n": no two different lists of sections give one text.
  // Throws std::invalid_argument for a tag that is empty or holds a blank or newline.
  CacheKeyBuilder& add(std::string_view tag, std::string_view bytes);

  CacheKey finish() const;

 private:
  std::string text_;
};

}  // namespace attnjit
