#include "bundle_selection.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "attnjit/kernel_key.hpp"
#include "entry_check.hpp"

namespace attnjit {
namespace {

bool takes(const std::vector<std::string>& allowed, const std::string& value) {
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

struct Candidates {
  std::map<std::string, const CacheLayer*> kernels;  // by digest
  std::map<std::string, const CacheLayer*> others;   // records of toolchains
  std::set<std::string> wanted_records;              // of the kernels
};

void add_candidate(const CacheLayer& layer, const std::string& digest, const BundleFilter& filter,
                   Candidates& candidates, std::vector<std::string>& left_out) {
  const CheckedEntry checked = check_entry(digest, layer.read(digest));
  if (!checked.problem.empty()) {
    left_out.push_back(layer.path().string() + ", key " + digest + ": " + checked.problem);
  } else if (!checked.kernel) {
    candidates.others.emplace(digest, &layer);
  } else if (takes(filter.archs, checked.kernel->arch) &&
             takes(filter.kernels, checked.metadata->name)) {
    candidates.kernels.emplace(digest, &layer);
    candidates.wanted_records.insert(make_toolchain_record_key(*checked.kernel).digest);
  }
}

}  // namespace

BundleSelection select_for_bundle(const std::vector<CacheLayer>& layers,
                                  const BundleFilter& filter) {
  BundleSelection selection;
  Candidates candidates;
  for (const CacheLayer& layer : layers) {
    for (const StoredEntry& entry : layer.list()) {
      add_candidate(layer, entry.digest, filter, candidates, selection.left_out);
    }
  }
  for (const auto& [digest, layer] : candidates.kernels) {
    selection.items.push_back({layer, digest});
  }
  for (const auto& [digest, layer] : candidates.others) {
    if (candidates.wanted_records.contains(digest)) {
      selection.items.push_back({layer, digest});
    }
  }
  selection.kernels = candidates.kernels.size();
  return selection;
}

}  // namespace attnjit
