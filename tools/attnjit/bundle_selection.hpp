// Which entries of a cache go into a bundle: the good ones that a filter takes, with the records
// that lead to them where there is no compiler. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "attnjit/cache_bundle.hpp"

namespace attnjit {

struct BundleFilter {
  std::vector<std::string> archs;    // e.g. "sm_90a"; empty: all
  std::vector<std::string> kernels;  // names of templates; empty: all
};

struct BundleSelection {
  std::vector<BundleItem> items;
  std::size_t kernels = 0;
  std::vector<std::string> left_out;  // bad entries, with the reason
};

// An entry comes from the first of `layers` that has it good; they must outlive the selection.
BundleSelection select_for_bundle(const std::vector<CacheLayer>& layers,
                                  const BundleFilter& filter);

}  // namespace attnjit
