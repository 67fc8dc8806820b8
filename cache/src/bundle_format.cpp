#include "bundle_format.hpp"

#include <limits>

#include "byte_order.hpp"
#include "content_digest.hpp"
#include "entry_layout.hpp"

// A bundle, version 1. Integers are unsigned and little-endian, nothing is padded.
//
//   offset     bytes  what
//   0          8      magic, "ATTNBDL\x1a"
//   8          4      format version
//   12         8      N, number of entries
//   20         48*N   index: 32 hex digits, offset (8), bytes (8), by digest
//   20+48*N    16     XXH3-128, canonical order, of every byte before it
//   36+48*N    …      entries, in the order of the index, back to back
namespace attnjit {
namespace {

constexpr std::string_view magic = "ATTNBDL\x1a";
constexpr std::uint32_t bundle_version = 1;
constexpr std::size_t version_offset = 8;
constexpr std::size_t count_offset = 12;
constexpr std::size_t row_bytes = digest_digits + 16;
constexpr std::size_t checksum_bytes = sizeof(ContentDigest);
static_assert(magic.size() == version_offset);

std::nullopt_t refuse(std::string* problem, std::string text) {
  if (problem != nullptr) {
    *problem = std::move(text);
  }
  return std::nullopt;
}

BundleRow read_row(std::string_view bytes, std::size_t offset) {
  return {.digest = std::string(bytes.substr(offset, digest_digits)),
          .offset = read_integer<std::uint64_t>(bytes, offset + digest_digits),
          .bytes = read_integer<std::uint64_t>(bytes, offset + digest_digits + 8)};
}

bool is_checksum_right(std::string_view bytes) {
  const std::string_view body = bytes.substr(0, bytes.size() - checksum_bytes);
  const ContentDigest computed = content_digest(body);
  return bytes.substr(body.size()) == std::string_view(computed.data(), computed.size());
}

}  // namespace

std::uint64_t encoded_index_bytes(std::uint64_t rows) {
  return bundle_header_bytes + rows * row_bytes + checksum_bytes;
}

std::string encode_bundle_index(std::vector<BundleRow>& rows) {
  std::uint64_t offset = encoded_index_bytes(rows.size());
  std::string bytes(magic);
  append_integer(bytes, bundle_version);
  append_integer(bytes, static_cast<std::uint64_t>(rows.size()));
  for (BundleRow& row : rows) {
    row.offset = offset;
    offset += row.bytes;
    bytes += row.digest;
    append_integer(bytes, row.offset);
    append_integer(bytes, row.bytes);
  }
  const ContentDigest checksum = content_digest(bytes);
  return bytes.append(checksum.data(), checksum.size());
}

std::optional<std::size_t> bundle_index_bytes(std::string_view header, std::uint64_t file_bytes,
                                              std::string* problem) {
  if (file_bytes < encoded_index_bytes(0) && magic.starts_with(header.substr(0, magic.size()))) {
    return refuse(problem, "is cut off: expected are at least " +
                               std::to_string(encoded_index_bytes(0)) + " bytes, and it has " +
                               std::to_string(file_bytes));
  }
  if (header.size() < bundle_header_bytes || !header.starts_with(magic)) {
    return refuse(problem, "does not begin as a bundle does");
  }
  if (const auto version = read_integer<std::uint32_t>(header, version_offset);
      version != bundle_version) {
    return refuse(problem, "bundle version " + std::to_string(version) + ", only version " +
                               std::to_string(bundle_version) + " is read");
  }
  const auto count = read_integer<std::uint64_t>(header, count_offset);
  const bool is_possible = count <= std::numeric_limits<std::uint32_t>::max();
  if (!is_possible || encoded_index_bytes(count) > file_bytes) {
    return refuse(
        problem,
        "is cut off: expected are " +
            (is_possible
                 ? "at least " + std::to_string(encoded_index_bytes(count)) + " bytes, for an index"
                 : std::string("more bytes than any file has, for one")) +
            " of " + std::to_string(count) + " entries, and it has " + std::to_string(file_bytes));
  }
  return static_cast<std::size_t>(encoded_index_bytes(count));
}

std::optional<std::vector<BundleRow>> decode_bundle_index(std::string_view bytes,
                                                          std::string* problem) {
  const auto index_bytes = bundle_index_bytes(bytes, bytes.size(), problem);
  if (!index_bytes) {
    return std::nullopt;
  }
  if (*index_bytes != bytes.size() || !is_checksum_right(bytes)) {
    return refuse(problem, "the checksum of its index differs: changed after it was written");
  }
  std::vector<BundleRow> rows;
  for (std::size_t at = bundle_header_bytes; at < *index_bytes - checksum_bytes; at += row_bytes) {
    BundleRow row = read_row(bytes, at);
    const bool is_sorted = rows.empty() || rows.back().digest < row.digest;
    if (!is_hex(row.digest, digest_digits) || !is_sorted || row.offset < *index_bytes) {
      return refuse(problem, "row " + std::to_string(rows.size()) + " of its index is not valid");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace attnjit
