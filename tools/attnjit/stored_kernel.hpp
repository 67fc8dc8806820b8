// Cache key -> the kernel stored under it: the source that was compiled, read back from the entry's
// key text, whatever the templates say today. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "attnjit/disk_cache.hpp"
#include "attnjit/kernel_metadata.hpp"
#include "attnjit/rendered_kernel.hpp"
#include "command.hpp"

namespace attnjit {

struct StoredKernel {
  std::string digest;
  RenderedKernel kernel;
  KernelMetadata metadata;
};

// No kernel, or more than one, is stored under a key; the message lists the near or matching ones.
class UnknownKeyError : public UsageError {
 public:
  using UsageError::UsageError;
};

// True for 6 to 32 hex digits: a key's digest, or enough of its beginning to name it.
bool looks_like_key(std::string_view text);

// The kernel whose digest begins with `prefix`, in either case. Throws UnknownKeyError, and
// std::runtime_error with the reason for an entry that is damaged.
StoredKernel find_stored_kernel(const DiskCache& cache, std::string_view prefix);

// Sources, entry point and target out of the key text of a kernel; nullopt if it is none.
std::optional<RenderedKernel> parse_kernel_key_text(std::string_view key_text);

}  // namespace attnjit
