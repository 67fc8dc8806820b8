// The steps from bytes on disk to a CacheLookup, for whatever holds them. Private; thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "attnjit/cache_key.hpp"
#include "attnjit/cache_lookup.hpp"
#include "entry_file.hpp"

namespace attnjit {

CacheLookup miss(MissReason reason, std::string detail);
CacheLookup miss(MissReason reason, const std::filesystem::path& path, std::string_view cause);

// Why a file cannot be had: absent where it is not there, else unreadable.
CacheLookup miss_of(const std::filesystem::path& path, const FileOutcome& outcome);

// `place` names them in the detail of a miss.
CacheLookup decode_lookup(std::string_view bytes, const std::filesystem::path& place);

// Reads the file too; `file.status` is what it was, if it could be opened.
CacheLookup read_entry(const std::filesystem::path& path, WholeFile& file);

// A hit only if it is `key`'s.
CacheLookup require_key(CacheLookup lookup, const CacheKey& key,
                        const std::filesystem::path& place);

}  // namespace attnjit
