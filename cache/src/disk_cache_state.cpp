#include "disk_cache_state.hpp"

#include <string>
#include <utility>

#include "entry_layout.hpp"
#include "quarantine.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view no_directory_problem =
    "no cache directory: neither an option nor ATTNJIT_CACHE_DIR, XDG_CACHE_HOME, HOME or the user "
    "database names one; set ATTNJIT_CACHE_DIR";

// That there is none is what every other reason adds something to.
bool says_more(MissReason reason) {
  return reason != MissReason::absent && reason != MissReason::disabled;
}

// The misses of all places so far, and one more.
void add_miss(CacheLookup& sum, const CacheLookup& next) {
  if (says_more(next.reason) && !says_more(sum.reason)) {
    sum.reason = next.reason;
  }
  sum.detail.append("; ").append(next.detail);
}

}  // namespace

DiskCache::State::State(CacheOptions cache_options, WarningHandler handler)
    : options(std::move(cache_options)),
      modes(file_modes(options.sharing)),
      warn(std::move(handler)),
      session_start(std::time(nullptr)),
      cap(options.max_bytes, session_start) {
  options.layers = distinct_layers(options.directory, options.layers);
  for (const fs::path& path : options.layers) {
    layers.emplace_back(path);
    is_layer_warned.emplace_back(false);
  }
}

TrustVerdict DiskCache::State::judge() {
  if (options.sharing == CacheSharing::group || trust == Trust::trusted) {
    return {Trust::trusted, ""};
  }
  TrustVerdict verdict = judge_own_directory(*options.directory);
  trust = verdict.trust;
  return verdict;
}

const fs::path* DiskCache::State::own_directory(CacheLookup* refusal) {
  if (!options.directory) {
    if (refusal != nullptr) {
      *refusal = miss(MissReason::disabled, std::string(no_directory_problem));
    }
    return nullptr;
  }
  TrustVerdict verdict = judge();
  if (verdict.trust == Trust::refused) {
    if (refusal != nullptr) {
      *refusal = miss(MissReason::untrusted, std::move(verdict.problem));
    }
    return nullptr;
  }
  return &*options.directory;
}

CacheLookup DiskCache::State::find_in_own(const CacheKey& key, Upkeep upkeep) {
  CacheLookup refusal;
  const fs::path* directory = own_directory(&refusal);
  if (directory == nullptr) {
    return refusal;
  }
  const fs::path path = entry_path(*directory, key.digest);
  WholeFile file;
  CacheLookup lookup = require_key(read_entry(path, file), key, path);
  if (upkeep == Upkeep::none) {
    return lookup;
  }
  if (lookup.entry && is_touch_due(file.status, std::time(nullptr))) {
    touch(path);
  }
  if (!lookup.entry && lookup.reason == MissReason::corrupt &&
      move_to_quarantine(path, file.status)) {
    counters.count_quarantined();
  }
  return lookup;
}

CacheLookup DiskCache::State::find(const CacheKey& key) {
  CacheLookup lookup = find_in_own(key, Upkeep::quarantine_and_touch);
  if (lookup.reason == MissReason::untrusted) {
    warn_once(is_own_warned,
              "the kernel cache is not used, so kernels are compiled again in every "
              "process (" +
                  lookup.detail + ")");
  }
  for (std::size_t i = 0; i < layers.size() && !lookup.entry; ++i) {
    const LayerState state = layers[i].state();
    if (state.kind == LayerKind::missing || state.kind == LayerKind::unusable) {
      warn_once(is_layer_warned[i], "a layer of the kernel cache is not used (" +
                                        layers[i].path().string() + ": " + state.problem + ")");
    }
    CacheLookup next = layers[i].find(key);
    if (next.entry) {
      return next;
    }
    add_miss(lookup, next);
  }
  return lookup;
}

void DiskCache::State::warn_once(std::atomic<bool>& is_warned, std::string_view problem) const {
  if (!is_warned.exchange(true) && warn) {
    warn(problem);
  }
}

void DiskCache::State::warn_of_put(std::string_view problem) {
  warn_once(is_own_warned,
            "the kernel cache is not written, so kernels are compiled again in the "
            "next process (" +
                std::string(problem) + ")");
}

}  // namespace attnjit
