#include "entry_check.hpp"

#include <fmt/format.h>

#include "attnjit/cache_key.hpp"
#include "cubin_inspection.hpp"
#include "stored_kernel.hpp"

namespace attnjit {
namespace {

CheckedEntry bad(std::string problem) {
  return {std::move(problem), std::nullopt, std::nullopt};
}

}  // namespace

CheckedEntry check_entry(std::string_view digest, const CacheLookup& lookup) {
  if (!lookup.entry) {
    return bad(fmt::format("{} ({})", to_string(lookup.reason), lookup.detail));
  }
  const CacheEntry& entry = *lookup.entry;
  if (const std::string own = key_of_text(entry.key_text).digest; own != digest) {
    return bad(fmt::format("its key has the digest {}: it was renamed or copied", own));
  }
  CheckedEntry checked;
  checked.kernel = parse_kernel_key_text(entry.key_text);
  checked.metadata = parse_kernel_metadata(entry.metadata);
  if (!checked.kernel) {
    return {};  // no kernel: the record of a toolchain
  }
  if (!checked.metadata) {
    return bad("its metadata is not what attnjit writes");
  }
  if (auto problem = cubin_problem(entry.payload, checked.kernel->arch, checked.kernel->entry)) {
    return bad(std::move(*problem));
  }
  return checked;
}

}  // namespace attnjit
