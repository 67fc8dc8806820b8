// The text of a cache key -> the tagged sections that it was built from (CacheKeyBuilder). Pure;
// thread-safe.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace attnjit {

// Views into the text.
struct KeySection {
  std::string_view tag;
  std::string_view bytes;
};

// Every section in order; nullopt if `key_text` is not wholly made of sections.
std::optional<std::vector<KeySection>> split_key_text(std::string_view key_text);

}  // namespace attnjit
