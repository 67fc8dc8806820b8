// attnjit gc: removes from a cache directory what it does not need.
#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "attnjit/shown_text.hpp"
#include "cache_places.hpp"
#include "command.hpp"
#include "json_document.hpp"
#include "standard_streams.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

struct GcCommand {
  CachePlaces places;
  std::string max_bytes;
  bool is_dry_run = false;
  bool as_json = false;
};

// 0 is allowed here: it empties the cache.
std::uint64_t find_max_bytes(const GcCommand& command, const DiskCache& cache) {
  if (command.max_bytes.empty()) {
    return cache.options().max_bytes;
  }
  if (command.max_bytes == "0") {
    return 0;
  }
  if (const auto bytes = parse_byte_count(command.max_bytes)) {
    return *bytes;
  }
  throw UsageError(
      fmt::format("--max-bytes = {}: allowed is a number of bytes, also as 512M or 2G, or "
                  "unlimited; fix: write "
                  "it so",
                  shown_text(command.max_bytes)));
}

Json to_json(const RemovedFiles& files) {
  return {{"count", files.count}, {"bytes", files.bytes}};
}

void print_json(const CleanupReport& report, const GcCommand& command, const DiskCache& cache) {
  Json document = {{"schema", 1}, {"command", "gc"}};
  set_path(document, "cache_directory", *cache.directory());
  document.update({{"dry_run", command.is_dry_run},
                   {"evicted", to_json(report.evicted)},
                   {"temporary", to_json(report.temporary)},
                   {"quarantined", to_json(report.quarantined)},
                   {"old_trees", report.old_trees},
                   {"kept_entries", report.kept_entries},
                   {"kept_bytes", report.kept_bytes}});
  print_result("{}\n", to_line(std::move(document)));
}

void print_text(const CleanupReport& report, const GcCommand& command, const DiskCache& cache) {
  const std::string_view verb = command.is_dry_run ? "would remove" : "removed";
  const auto print_files = [&](const RemovedFiles& files, std::string_view what) {
    print_result("{} {}, {}\n", verb, count_of(files.count, what), mebibytes(files.bytes));
  };
  print_files(report.evicted, "least recently used entry file");
  print_files(report.temporary, "temporary file");
  print_files(report.quarantined, "damaged entry file");
  print_result("{} {}{}{}\n", verb, count_of(report.old_trees.size(), "old tree"),
               report.old_trees.empty() ? "" : ": ", fmt::join(report.old_trees, ", "));
  print_result("{}: {} entries, {} left\n", cache.directory()->string(), report.kept_entries,
               mebibytes(report.kept_bytes));
}

ExitCode run(const GcCommand& command) {
  const DiskCache cache = open_cache(command.places);
  require_trusted(cache);
  const CleanupReport report =
      cache.collect_garbage(find_max_bytes(command, cache),
                            command.is_dry_run ? CleanupMode::report : CleanupMode::remove);
  if (!report.is_done) {
    throw std::runtime_error(
        report.is_busy
            ? fmt::format("{}: another process is cleaning it up; fix: run again later",
                          cache.directory()->string())
            : fmt::format("{}: cannot be cleaned up, for no lock can be made in it ({}); fix: make "
                          "it writable, or see with --dry-run what would be removed",
                          cache.directory()->string(), report.problem));
  }
  if (command.as_json) {
    print_json(report, command, cache);
  } else {
    print_text(report, command, cache);
  }
  return ExitCode::succeeded;
}

}  // namespace

void add_gc_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand(
      "gc",
      "Remove what the cache directory does not need: leftovers, and entries beyond its size");
  const auto gc = std::make_shared<GcCommand>();
  add_cache_places(*command, gc->places);
  command->add_option("--max-bytes", gc->max_bytes,
                      "Keep at most so many bytes, e.g. 512M; 0 empties the cache (default "
                      "ATTNJIT_CACHE_MAX_BYTES, else 2G)");
  command->add_flag("--dry-run", gc->is_dry_run, "Remove nothing, say what would be removed");
  command->add_flag("--json", gc->as_json, "Print one JSON document");
  command->callback([&action, gc] { action = [gc] { return run(*gc); }; });
}

}  // namespace attnjit
