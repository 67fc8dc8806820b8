// libFuzzer on the bundle decoder, its index and its entries, from a file as a layer reads them:
// whatever the bytes, it ends, stays in bounds and gives no entry of another key.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "bundle_file.hpp"
#include "content_digest.hpp"

namespace {

using attnjit::BundleFile;

attnjit::FileDescriptor file_in_memory(std::string_view bytes) {
  attnjit::FileDescriptor file(::memfd_create("bundle", 0));
  if (file.get() < 0 ||
      ::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  return file;
}

void check(std::string_view bytes) {
  const BundleFile bundle(file_in_memory(bytes), bytes.size(), "bundle");
  if (!bundle.problem().empty() && !bundle.rows().empty()) {
    std::abort();
  }
  for (const attnjit::BundleRow& row : bundle.rows()) {
    bundle.read(row.digest);
  }
  bundle.read(std::string(32, '0'));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(data, data + size);
  check(bytes);
  // No fuzzer finds a checksum: the index is given a right one where its count says that it ends.
  std::string problem;
  const auto index_bytes = attnjit::bundle_index_bytes(bytes, bytes.size(), &problem);
  if (index_bytes) {
    const std::size_t body = *index_bytes - sizeof(attnjit::ContentDigest);
    const attnjit::ContentDigest checksum =
        attnjit::content_digest(std::string_view(bytes).substr(0, body));
    bytes.replace(body, checksum.size(), checksum.data(), checksum.size());
    check(bytes);
  }
  return 0;
}
