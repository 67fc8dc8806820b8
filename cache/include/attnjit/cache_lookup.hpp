// What a search for an entry ends with: the verified entry, or the reason why there is none. Plain
// values; the functions are thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "attnjit/cache_entry.hpp"

namespace attnjit {

enum class MissReason {
  absent,       // no entry
  disabled,     // no usable directory: memory only
  unreadable,   // an I/O error or missing permission
  corrupt,      // not a whole entry: length or checksum
  version,      // written by another format version
  key_differs,  // another key's text under this digest or name
  untrusted,    // others could have written it
};
constexpr std::array<MissReason, 7> miss_reasons = {
    MissReason::absent,  MissReason::disabled,    MissReason::unreadable, MissReason::corrupt,
    MissReason::version, MissReason::key_differs, MissReason::untrusted};
std::string_view to_string(MissReason);

struct CacheLookup {
  std::optional<CacheEntry> entry;         // set on a hit
  MissReason reason = MissReason::absent;  // of a miss
  std::string detail;                      // of a miss: path and cause, for people
};

// An entry as a listing finds it, unverified.
struct StoredEntry {
  std::string digest;
  std::filesystem::path path;  // of the entry's file, or of the bundle that holds it
  std::uint64_t bytes = 0;
};

// Reads and verifies one entry file; a miss with its reason otherwise.
CacheLookup read_entry(const std::filesystem::path& path);

}  // namespace attnjit
