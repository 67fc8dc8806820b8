#include "attnjit/cache_key.hpp"

#include "content_digest.hpp"

#include <stdexcept>
#include <utility>

namespace attnjit {

// Tags hold neither blank nor newline, so the length that follows is always found, and the length
// says where the bytes end whatever they hold.
CacheKeyBuilder& CacheKeyBuilder::add(std::string_view tag, std::string_view bytes) {
  if (tag.empty() || tag.find_first_of(" \n") != std::string_view::npos) {
    throw std::invalid_argument("CacheKeyBuilder::add: tag is \"" + std::string(tag) +
                                "\"; allowed is a word without blank or newline");
  }
  text_.append(tag).append(" ").append(std::to_string(bytes.size())).append("\n");
  text_.append(bytes).append("\n");
  return *this;
}

CacheKey CacheKeyBuilder::finish() const {
  return key_of_text(text_);
}

CacheKey key_of_text(std::string text) {
  std::string digest = to_hex(content_digest(text));
  return {.text = std::move(text), .digest = std::move(digest)};
}

}  // namespace attnjit
