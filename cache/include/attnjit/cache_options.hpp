// What a kernel cache is made of: one directory that is written, read-only layers below it, who may
// share it and how large it grows. Plain values; the functions are thread-safe as getenv is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

using CacheWarningHandler = std::function<void(std::string_view)>;

enum class CacheSharing {
  owner,  // directories 0700, entries 0600; a directory that others could write is not used
  group,  // directories 2770, entries 0660; used whoever owns the directory
};

constexpr std::uint64_t default_cache_max_bytes = std::uint64_t{2} << 30;
constexpr std::uint64_t unlimited_cache_bytes = ~std::uint64_t{0};

struct CacheOptions {
  std::optional<std::filesystem::path> directory;  // written; nullopt: memory only
  // Searched in this order after `directory`, never written: directories of the same layout, or
  // bundle files. DiskCache asks each once: see distinct_layers.
  std::vector<std::filesystem::path> layers = {};
  CacheSharing sharing = CacheSharing::owner;
  std::uint64_t max_bytes = default_cache_max_bytes;  // of the entries in `directory`
};

// What a caller decides; the environment decides what it leaves open.
struct CacheChoice {
  std::filesystem::path directory;                 // empty: see resolve_cache_directory
  std::vector<std::filesystem::path> layers = {};  // empty: $ATTNJIT_CACHE_LAYERS, colon-separated
  std::optional<CacheSharing> sharing;             // else $ATTNJIT_CACHE_SHARED, 0 or 1
  std::optional<std::uint64_t> max_bytes;  // else $ATTNJIT_CACHE_MAX_BYTES, see parse_byte_count
};

// A variable with a value that is not allowed is passed over: `warn` (may be empty) is told the
// variable, the value, what is allowed and the fix. Relative paths are taken from the current
// directory, now. Nothing is made or checked on disk.
CacheOptions resolve_cache_options(const CacheChoice& choice, const CacheWarningHandler& warn);

// Where the cache lives: `option` if not empty, else $ATTNJIT_CACHE_DIR, else
// $XDG_CACHE_HOME/attnjit, else $HOME/.cache/attnjit, else .cache/attnjit in the home directory of
// the user database, else none (memory only). A relative option or ATTNJIT_CACHE_DIR is taken from
// the current directory, now; relative XDG_CACHE_HOME and HOME are ignored, as the XDG
// specification asks. Nothing is made or checked on disk.
std::optional<std::filesystem::path> resolve_cache_directory(const std::filesystem::path& option);

// `layers` without those that an earlier one is, or `directory`: under another name, through a link
// or with a slash at its end. What is not there yet is compared by its name.
std::vector<std::filesystem::path> distinct_layers(
    const std::optional<std::filesystem::path>& directory,
    const std::vector<std::filesystem::path>& layers);

// "500000", "512M", "2G", "unlimited": a positive decimal number, with K, M, G or T a multiple of
// 1024, 1024², …; nullopt for anything else.
std::optional<std::uint64_t> parse_byte_count(std::string_view text);

}  // namespace attnjit
