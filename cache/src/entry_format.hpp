// What the decoder of cache_entry.cpp tells the reader of files beyond decode_entry. Private;
// pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace attnjit {

// The version encode_entry writes and decode_entry reads; the history is in cache/README.md.
constexpr std::uint32_t entry_format_version = 1;

// The version that `bytes` claim; nullopt where they are no entry of any version.
std::optional<std::uint32_t> claimed_entry_version(std::string_view bytes);

}  // namespace attnjit
