// One cache entry as bytes: a self-describing, checksummed single file. Pure functions,
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attnjit {

struct CacheEntry {
  std::string key_text;  // the CacheKey::text it was stored under
  std::string metadata;  // opaque to the cache; one line of JSON by convention
  std::string payload;   // e.g. a cubin

  friend bool operator==(const CacheEntry&, const CacheEntry&) = default;
};

std::string encode_entry(const CacheEntry& entry);

// nullopt, and the reason in *problem, for anything that is not exactly what encode_entry wrote.
std::optional<CacheEntry> decode_entry(std::string_view bytes, std::string* problem);

}  // namespace attnjit
