// Where an entry lies below a cache directory: v1/<first 2 hex digits>/<the other 30>, and the lock
// that its key shares with one in 256 others: locks/<first 2 hex digits>. Names stay short and
// portable; directories stay small. Private; pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace attnjit {

// Changes with the format version: trees of another version are left alone, not misread.
constexpr std::string_view entry_tree_name = "v1";
constexpr std::string_view lock_tree_name = "locks";
constexpr std::size_t shard_digits = 2;
constexpr std::size_t digest_digits = 32;

// Whether `text` is exactly `digits` lower-case hex digits.
bool is_hex(std::string_view text, std::size_t digits);

// `digest` is 32 hex digits.
std::filesystem::path entry_path(const std::filesystem::path& directory, std::string_view digest);
std::filesystem::path lock_path(const std::filesystem::path& directory, std::string_view digest);

}  // namespace attnjit
