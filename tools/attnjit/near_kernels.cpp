#include "near_kernels.hpp"

#include <algorithm>
#include <utility>

#include "stored_kernel.hpp"

namespace attnjit {

std::vector<NearKernel> find_near_kernels(const DiskCache& cache, const KernelIdentity& wanted,
                                          std::size_t most) {
  std::vector<NearKernel> near;
  for (const StoredKernel& stored : list_stored_kernels(cache).kernels) {
    if (stored.kernel.entry != wanted.kernel.entry) {
      continue;
    }
    const auto found = identify_kernel(stored.key_text, stored.metadata.config);
    if (!found) {
      continue;
    }
    std::vector<Difference> differences = find_differences(wanted, *found);
    if (!differences.empty()) {
      near.push_back({stored.digest, std::move(differences)});
    }
  }
  std::stable_sort(near.begin(), near.end(), [](const NearKernel& left, const NearKernel& right) {
    return left.differences.size() < right.differences.size();
  });
  near.resize(std::min(near.size(), most));
  return near;
}

}  // namespace attnjit
