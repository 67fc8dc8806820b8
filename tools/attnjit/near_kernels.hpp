// A kernel -> those of a cache that nearly are it. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "attnjit/disk_cache.hpp"
#include "kernel_identity.hpp"

namespace attnjit {

struct NearKernel {
  std::string digest;
  std::vector<Difference> differences;  // wanted on the left, stored on the right
};

// The stored kernels of the same template that differ least from `wanted`, at most `most` of them,
// nearest first; `wanted` itself is none of them. Reads every entry.
std::vector<NearKernel> find_near_kernels(const DiskCache& cache, const KernelIdentity& wanted,
                                          std::size_t most);

}  // namespace attnjit
