// A plan -> which of its kernels a cache lacks. The plan is the JSON document of `attnjit plan` or
// of `attnjit warm`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cache_places.hpp"
#include "target_arguments.hpp"

namespace attnjit {

struct MissingKernel {
  std::string name;
  std::string arch;
  std::string key;
  std::string reason;  // of the miss
};

struct PlanComparison {
  std::size_t wanted = 0;              // kernels of the plan
  std::vector<MissingKernel> missing;  // in the plan's order
};

// Of a plan's descriptors, the kernels for `targets`, as the toolchain that last compiled them into
// the cache makes them; of the document of `warm`, the keys in it. Throws UsageError for a file
// that cannot be read or is neither.
PlanComparison compare_with_plan(const CachePlaces& places, const std::filesystem::path& plan,
                                 const TargetArguments& targets);

}  // namespace attnjit
