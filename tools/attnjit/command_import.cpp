// attnjit import: copies into a cache directory what a bundle or another directory has beyond it.
#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/cache_layer.hpp"
#include "cache_places.hpp"
#include "command.hpp"
#include "entry_check.hpp"
#include "json_document.hpp"
#include "standard_streams.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct ImportCommand {
  CachePlaces places;
  fs::path source;
  bool as_json = false;
};

struct ImportCounts {
  std::size_t added = 0;
  std::size_t present = 0;
  std::vector<std::string> bad;
};

void import_entry(const CacheLayer& source, const std::string& digest, DiskCache& cache,
                  ImportCounts& counts) {
  const CacheLookup lookup = source.read(digest);
  if (const CheckedEntry checked = check_entry(digest, lookup); !checked.problem.empty()) {
    counts.bad.push_back(fmt::format("key {}: {}", digest, checked.problem));
    return;
  }
  const CacheKey key{.text = lookup.entry->key_text, .digest = digest};
  if (cache.find(key).entry) {
    counts.present += 1;
    return;
  }
  if (!cache.put(key, lookup.entry->metadata, lookup.entry->payload)) {
    throw std::runtime_error(fmt::format(
        "import ended after {} entries, for the cache cannot be written", counts.added));
  }
  counts.added += 1;
}

ExitCode run(const ImportCommand& command) {
  const CacheLayer source(fs::absolute(command.source));
  require_usable(source, "source");
  DiskCache cache = open_cache(command.places);
  require_trusted(cache);
  ImportCounts counts;
  for (const StoredEntry& entry : source.list()) {
    import_entry(source, entry.digest, cache, counts);
  }
  for (const std::string& bad : counts.bad) {
    print_message("attnjit: not imported: {}\n", bad);
  }
  if (command.as_json) {
    Json document = {{"schema", 1}, {"command", "import"}};
    set_path(document, "source", source.path());
    set_path(document, "cache_directory", *cache.directory());
    document.update({{"added", counts.added}, {"present", counts.present}, {"bad", counts.bad}});
    print_result("{}\n", to_line(std::move(document)));
  } else {
    print_result("{}: {} entries added, {} there already, {} bad\n", cache.directory()->string(),
                 counts.added, counts.present, counts.bad.size());
  }
  return counts.bad.empty() ? ExitCode::succeeded : ExitCode::failed;
}

}  // namespace

void add_import_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("import", "Add to the cache what a bundle or another cache directory has");
  const auto import = std::make_shared<ImportCommand>();
  command->add_option("source", import->source, "A bundle, or a cache directory")->required();
  add_cache_places(*command, import->places);
  command->add_flag("--json", import->as_json, "Print one JSON document");
  command->callback([&action, import] { action = [import] { return run(*import); }; });
}

}  // namespace attnjit
