// attnjit stats: what a cache holds, where it looks, and what its users have had of it.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/cache_statistics.hpp"
#include "cache_places.hpp"
#include "command.hpp"
#include "json_document.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

struct StatsCommand {
  CachePlaces places;
  bool as_json = false;
};

struct Holding {
  std::size_t entries = 0;
  std::uint64_t bytes = 0;
};

Holding hold(const std::vector<StoredEntry>& entries) {
  Holding holding{.entries = entries.size()};
  for (const StoredEntry& entry : entries) {
    holding.bytes += entry.bytes;
  }
  return holding;
}

double saved_seconds(const CacheStatistics& statistics) {
  return static_cast<double>(statistics.saved_microseconds) / 1e6;
}

std::string cap_of(const DiskCache& cache) {
  const std::uint64_t cap = cache.options().max_bytes;
  return cap == unlimited_cache_bytes ? "unlimited" : "of at most " + mebibytes(cap);
}

std::uint64_t all_misses(const CacheStatistics& statistics) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : statistics.misses) {
    sum += count;
  }
  return sum;
}

void print_places(const DiskCache& cache) {
  const Holding own = hold(cache.list());
  const std::string problem = cache.trust_problem();
  print_result("{}: {} entries, {}, {}{}\n", cache.directory()->string(), own.entries,
               mebibytes(own.bytes), cap_of(cache),
               problem.empty() ? "" : "; not used: " + problem);
  for (const CacheLayer& layer : cache.layers()) {
    const LayerState state = layer.state();
    const Holding held = hold(layer.list());
    print_result("layer {}: {}, {} entries, {}{}\n", layer.path().string(), to_string(state.kind),
                 held.entries, mebibytes(held.bytes),
                 state.problem.empty() ? "" : "; not used: " + state.problem);
  }
}

void print_text(const DiskCache& cache, const CacheStatistics& statistics) {
  print_places(cache);
  const std::uint64_t misses = all_misses(statistics);
  print_result("\nprocesses         {}\n", statistics.records);
  print_result("hits              {}, {} read\n", statistics.hits,
               mebibytes(statistics.bytes_read));
  print_result("compiling saved   {:.1f} s\n", saved_seconds(statistics));
  print_result("misses            {}\n", misses);
  for (std::size_t i = 0; i < miss_reasons.size(); ++i) {
    if (statistics.misses[i] != 0) {
      print_result("  {:<15} {}\n", to_string(miss_reasons[i]), statistics.misses[i]);
    }
  }
  print_result("stored            {}, {} written, {} failed\n", statistics.puts,
               mebibytes(statistics.bytes_written), statistics.failed_puts);
  print_result("evicted           {}\n", statistics.evictions);
  print_result("damaged           {}\n", statistics.quarantined);
}

Json places_json(const DiskCache& cache) {
  Json layers = Json::array();
  for (const CacheLayer& layer : cache.layers()) {
    const LayerState state = layer.state();
    const Holding held = hold(layer.list());
    Json mounted;
    set_path(mounted, "path", layer.path());
    mounted.update({{"kind", to_string(state.kind)},
                    {"entries", held.entries},
                    {"bytes", held.bytes},
                    {"problem", state.problem}});
    layers.push_back(std::move(mounted));
  }
  return layers;
}

void print_json(const DiskCache& cache, const CacheStatistics& statistics) {
  Json misses = Json::object();
  for (std::size_t i = 0; i < miss_reasons.size(); ++i) {
    misses[std::string(to_string(miss_reasons[i]))] = statistics.misses[i];
  }
  const Holding own = hold(cache.list());
  Json document = {{"schema", 1}, {"command", "stats"}};
  set_path(document, "cache_directory", *cache.directory());
  document.update({{"problem", cache.trust_problem()},
                   {"entries", own.entries},
                   {"bytes", own.bytes},
                   {"max_bytes", cache.options().max_bytes},
                   {"layers", places_json(cache)},
                   {"processes", statistics.records},
                   {"hits", statistics.hits},
                   {"misses", misses},
                   {"puts", statistics.puts},
                   {"failed_puts", statistics.failed_puts},
                   {"evictions", statistics.evictions},
                   {"quarantined", statistics.quarantined},
                   {"bytes_read", statistics.bytes_read},
                   {"bytes_written", statistics.bytes_written},
                   {"compile_seconds_saved", saved_seconds(statistics)}});
  print_result("{}\n", to_line(std::move(document)));
}

ExitCode run(const StatsCommand& command) {
  const DiskCache cache = open_cache(command.places);
  const CacheStatistics statistics = read_statistics(*cache.directory());
  if (command.as_json) {
    print_json(cache, statistics);
  } else {
    print_text(cache, statistics);
  }
  return ExitCode::succeeded;
}

}  // namespace

void add_stats_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand(
      "stats", "Show what the cache and its layers hold, hits, misses and what was saved");
  const auto stats = std::make_shared<StatsCommand>();
  add_cache_places(*command, stats->places);
  command->add_flag("--json", stats->as_json, "Print one JSON document");
  command->callback([&action, stats] { action = [stats] { return run(*stats); }; });
}

}  // namespace attnjit
