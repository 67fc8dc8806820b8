#include "cache_places.hpp"

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "attnjit/shown_text.hpp"
#include "command.hpp"
#include "given_words.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

void warn(std::string_view warning) {
  print_message("attnjit: {}\n", warning);
}

CacheOptions require_directory(CacheOptions options) {
  if (!options.directory) {
    throw UsageError("there is no cache directory; fix: name one with --cache-dir");
  }
  std::error_code error;
  const auto status = std::filesystem::status(*options.directory, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) {
    throw UsageError(fmt::format("cache directory = {}: is no directory; fix: name one that is",
                                 shown_text(options.directory->string())));
  }
  return options;
}

}  // namespace

void add_cache_places(CLI::App& command, CachePlaces& places) {
  command.add_option("--cache-dir", places.directory,
                     "Cache directory (default ATTNJIT_CACHE_DIR, else the user's cache)");
  add_texts(
      command, "--cache-layer",
      [&places](const std::vector<std::string>& paths) {
        places.layers.assign(paths.begin(), paths.end());
      },
      "Read-only directory or bundle below it, may be given several times (default "
      "ATTNJIT_CACHE_LAYERS)");
}

DiskCache open_cache(const CachePlaces& places) {
  CacheChoice choice;
  choice.directory = places.directory;
  choice.layers = places.layers;
  CacheOptions options = require_directory(resolve_cache_options(choice, warn));
  for (const std::filesystem::path& path : distinct_layers(options.directory, options.layers)) {
    const LayerState state = CacheLayer(path).state();
    if (state.kind == LayerKind::missing || state.kind == LayerKind::unusable) {
      warn(fmt::format("layer {} is left out: {}", shown_text(path.string()), state.problem));
    }
  }
  return DiskCache(std::move(options), warn);
}

std::vector<CacheLayer> all_layers(const DiskCache& cache) {
  std::vector<CacheLayer> layers;
  layers.emplace_back(*cache.directory());
  for (const std::filesystem::path& path : cache.options().layers) {
    layers.emplace_back(path);
  }
  return layers;
}

void require_trusted(const DiskCache& cache) {
  if (const std::string problem = cache.trust_problem(); !problem.empty()) {
    throw std::runtime_error(problem);
  }
}

void require_usable(const CacheLayer& layer, std::string_view field) {
  const LayerState state = layer.state();
  if (state.kind == LayerKind::missing || state.kind == LayerKind::unusable) {
    throw UsageError(fmt::format(
        "{} = {}: {}{}", field, shown_text(layer.path().string()), state.problem,
        state.reason == MissReason::untrusted
            ? ""  // which says what to do
            : "; fix: name a bundle that `attnjit bundle` wrote, or a cache directory"));
  }
}

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace attnjit
