// Which cache a command works on: the directory that is written and the read-only layers, by
// options or else by the environment.
#pragma once

#include <filesystem>
#include <vector>

#include "attnjit/cache_layer.hpp"
#include "attnjit/disk_cache.hpp"

namespace CLI {
class App;
}

namespace attnjit {

struct CachePlaces {
  std::filesystem::path directory;            // see resolve_cache_directory
  std::vector<std::filesystem::path> layers;  // empty: those of ATTNJIT_CACHE_LAYERS
};

// Declares --cache-dir and --cache-layer on `command`; `places` must outlive the parse.
void add_cache_places(CLI::App& command, CachePlaces& places);

// The cache of these places, its warnings on standard error. Throws UsageError where no directory
// is named or what is named is none.
DiskCache open_cache(const CachePlaces& places);

// The written directory and the layers, all read alike. `cache` has a directory.
std::vector<CacheLayer> all_layers(const DiskCache& cache);

// Throws std::runtime_error with the way out if the directory is not trusted: a command that would
// write it must not go on without saying so.
void require_trusted(const DiskCache& cache);

// Throws UsageError with `field` first for a layer that is missing or cannot be used.
void require_usable(const CacheLayer& layer, std::string_view field);

// A number of bytes for people: "1.5 MiB".
std::string mebibytes(std::uint64_t bytes);

}  // namespace attnjit
