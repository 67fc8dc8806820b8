#include "attnjit/cache_entry.hpp"

#include <array>
#include <cstdint>
#include <utility>

#include "byte_order.hpp"
#include "content_digest.hpp"
#include "entry_format.hpp"

// An entry, version 1. Integers are unsigned and little-endian, nothing is padded.
//
//   offset        bytes  what
//   0             8      magic, "ATTNJIT\x1a"
//   8             4      format version
//   12            8      K, bytes of the key text
//   20            8      M, bytes of the metadata
//   28            8      P, bytes of the payload
//   36            K      key text
//   36+K          M      metadata
//   36+K+M        P      payload
//   36+K+M+P      16     XXH3-128, canonical order, of every byte before it
//
// The magic and the version keep their place in every version. cache/README.md holds the history.
namespace attnjit {
namespace {

constexpr std::string_view magic = "ATTNJIT\x1a";
constexpr std::size_t version_offset = 8;
constexpr std::size_t lengths_offset = 12;
constexpr std::size_t header_bytes = 36;
constexpr std::size_t checksum_bytes = sizeof(ContentDigest);
static_assert(magic.size() == version_offset);

// The three parts in file order; nullopt unless they fill the bytes between header and checksum
// exactly. Compares before it subtracts, so that no length can wrap around.
std::optional<std::array<std::string_view, 3>> split_body(std::string_view bytes) {
  std::string_view rest = bytes.substr(header_bytes, bytes.size() - header_bytes - checksum_bytes);
  std::array<std::string_view, 3> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto length = read_integer<std::uint64_t>(bytes, lengths_offset + 8 * i);
    if (length > rest.size()) {
      return std::nullopt;
    }
    parts[i] = rest.substr(0, length);
    rest.remove_prefix(length);
  }
  if (!rest.empty()) {
    return std::nullopt;
  }
  return parts;
}

// Why `bytes` are not one whole entry of this version; empty if they are, parts filled in.
std::string check_entry(std::string_view bytes, std::array<std::string_view, 3>& parts) {
  const std::optional<std::uint32_t> version = claimed_entry_version(bytes);
  if (!version) {
    return "does not begin as a cache entry does";
  }
  if (*version != entry_format_version) {
    return "format version " + std::to_string(*version) + ", only version " +
           std::to_string(entry_format_version) + " is read";
  }
  if (bytes.size() < header_bytes + checksum_bytes) {
    return "cut off: " + std::to_string(bytes.size()) + " bytes";
  }
  const std::string_view body = bytes.substr(0, bytes.size() - checksum_bytes);
  const ContentDigest computed = content_digest(body);
  if (bytes.substr(body.size()) != std::string_view(computed.data(), computed.size())) {
    return "checksum differs: cut off or changed after it was written";
  }
  const auto split = split_body(bytes);
  if (!split) {
    return "lengths do not add up to the size of the entry";
  }
  parts = *split;
  return "";
}

}  // namespace

std::optional<std::uint32_t> claimed_entry_version(std::string_view bytes) {
  if (bytes.size() < lengths_offset || !bytes.starts_with(magic)) {
    return std::nullopt;
  }
  return read_integer<std::uint32_t>(bytes, version_offset);
}

std::string encode_entry(const CacheEntry& entry) {
  std::string bytes;
  bytes.reserve(header_bytes + entry.key_text.size() + entry.metadata.size() +
                entry.payload.size() + checksum_bytes);
  bytes += magic;
  append_integer(bytes, entry_format_version);
  for (const std::string* part : {&entry.key_text, &entry.metadata, &entry.payload}) {
    append_integer(bytes, static_cast<std::uint64_t>(part->size()));
  }
  bytes.append(entry.key_text).append(entry.metadata).append(entry.payload);
  const ContentDigest checksum = content_digest(bytes);
  return bytes.append(checksum.data(), checksum.size());
}

std::optional<CacheEntry> decode_entry(std::string_view bytes, std::string* problem) {
  std::array<std::string_view, 3> parts;
  std::string found = check_entry(bytes, parts);
  if (!found.empty()) {
    if (problem != nullptr) {
      *problem = std::move(found);
    }
    return std::nullopt;
  }
  return CacheEntry{.key_text = std::string(parts[0]),
                    .metadata = std::string(parts[1]),
                    .payload = std::string(parts[2])};
}

}  // namespace attnjit
