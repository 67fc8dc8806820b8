// The beginning of a bundle file as bytes: header and index. Private; pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

// Where one entry lies in the file.
struct BundleRow {
  std::string digest;  // 32 lower-case hex digits
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const BundleRow&, const BundleRow&) = default;
};

constexpr std::size_t bundle_header_bytes = 20;

// How many bytes header, index and checksum take for so many entries, below 2^32.
std::uint64_t encoded_index_bytes(std::uint64_t rows);

// Header, index and their checksum for entries that follow in this order, back to back: offsets are
// filled in. `rows` are sorted by digest, without repetition.
std::string encode_bundle_index(std::vector<BundleRow>& rows);

// How many bytes header, index and checksum take by the header; nullopt, and the reason in
// *problem, for no header of a bundle of this version in a file of `file_bytes`.
std::optional<std::size_t> bundle_index_bytes(std::string_view header, std::uint64_t file_bytes,
                                              std::string* problem);

// The rows, verified: sorted, and each behind the index. Where the file was cut off a row may lead
// past its end. nullopt, and the reason in *problem, for anything else.
std::optional<std::vector<BundleRow>> decode_bundle_index(std::string_view bytes,
                                                          std::string* problem);

}  // namespace attnjit
