// libFuzzer on the entry decoder: whatever the bytes, it ends, stays in bounds, and what it takes
// for an entry is one: encoded again it gives the same bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "attnjit/cache_entry.hpp"
#include "content_digest.hpp"
#include "entry_format.hpp"

namespace {

void check(std::string_view bytes) {
  attnjit::claimed_entry_version(bytes);
  std::string problem;
  const auto entry = attnjit::decode_entry(bytes, &problem);
  const bool is_right = entry ? attnjit::encode_entry(*entry) == bytes : !problem.empty();
  if (!is_right) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(data, data + size);
  check(bytes);
  // No fuzzer finds a checksum: behind a right one the lengths are looked at too.
  const attnjit::ContentDigest checksum = attnjit::content_digest(bytes);
  check(bytes.append(checksum.data(), checksum.size()));
  return 0;
}
