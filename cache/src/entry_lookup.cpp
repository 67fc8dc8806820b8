#include "entry_lookup.hpp"

#include <cerrno>
#include <utility>

#include "entry_format.hpp"

namespace attnjit {

namespace fs = std::filesystem;

std::string_view to_string(MissReason reason) {
  switch (reason) {
    case MissReason::absent:
      return "absent";
    case MissReason::disabled:
      return "disabled";
    case MissReason::unreadable:
      return "unreadable";
    case MissReason::corrupt:
      return "corrupt";
    case MissReason::version:
      return "version";
    case MissReason::key_differs:
      return "key_differs";
    case MissReason::untrusted:
      return "untrusted";
  }
  return "";
}

CacheLookup miss(MissReason reason, std::string detail) {
  return {.entry = std::nullopt, .reason = reason, .detail = std::move(detail)};
}

CacheLookup miss(MissReason reason, const fs::path& path, std::string_view cause) {
  return miss(reason, path.string() + ": " + std::string(cause));
}

CacheLookup miss_of(const fs::path& path, const FileOutcome& outcome) {
  const bool is_absent = outcome.error_number == ENOENT;
  return miss(is_absent ? MissReason::absent : MissReason::unreadable, path, outcome.message());
}

CacheLookup decode_lookup(std::string_view bytes, const fs::path& place) {
  std::string problem;
  std::optional<CacheEntry> entry = decode_entry(bytes, &problem);
  if (!entry) {
    const bool other_version =
        claimed_entry_version(bytes).value_or(entry_format_version) != entry_format_version;
    return miss(other_version ? MissReason::version : MissReason::corrupt, place, problem);
  }
  return {.entry = std::move(entry), .reason = MissReason::absent, .detail = ""};
}

CacheLookup read_entry(const fs::path& path, WholeFile& file) {
  if (const FileOutcome outcome = read_whole_file(path, file); !outcome.ok()) {
    return miss_of(path, outcome);
  }
  return decode_lookup(file.bytes, path);
}

CacheLookup read_entry(const fs::path& path) {
  WholeFile file;
  return read_entry(path, file);
}

CacheLookup require_key(CacheLookup lookup, const CacheKey& key, const fs::path& place) {
  if (lookup.entry && lookup.entry->key_text != key.text) {
    return miss(MissReason::key_differs, place, "holds the entry of another key");
  }
  return lookup;
}

}  // namespace attnjit
