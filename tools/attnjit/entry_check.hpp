// Whether a stored entry would serve somebody: beyond what a lookup verifies, its name, its
// metadata and the cubin. Pure functions, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "attnjit/cache_lookup.hpp"
#include "attnjit/kernel_metadata.hpp"
#include "attnjit/rendered_kernel.hpp"

namespace attnjit {

struct CheckedEntry {
  std::string problem;  // why it serves nobody; empty if it is good
  // Of a kernel that is good; none for the record of a toolchain.
  std::optional<KernelMetadata> metadata;
  std::optional<RenderedKernel> kernel;  // its sources, entry point and target
};

// `lookup` is what was read under `digest`.
CheckedEntry check_entry(std::string_view digest, const CacheLookup& lookup);

}  // namespace attnjit
