// attnjit report: one self-contained HTML page of a cache or of runs of `attnjit bench`.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "attnjit/disk_cache.hpp"
#include "attnjit/shown_text.hpp"
#include "cache_places.hpp"
#include "command.hpp"
#include "given_words.hpp"
#include "report_data.hpp"
#include "report_page.hpp"
#include "standard_streams.hpp"
#include "stored_kernel.hpp"

namespace attnjit {
namespace {

struct ReportCommand {
  std::vector<std::string> runs;
  CachePlaces places;
};

std::string read_run(const std::string& path) {
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(path, ignored);
  std::ifstream file(is_directory ? std::string() : path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) {
    throw UsageError(fmt::format(
        "{}: cannot be read; fix: name a file made by `attnjit bench … --json`", shown_text(path)));
  }
  return text;
}

ExitCode run(const ReportCommand& command) {
  ReportData data;
  for (const std::string& path : command.runs) {
    data.add_run(path, read_run(path));
  }
  bool is_damaged = false;
  if (command.runs.empty() || !command.places.directory.empty() || !command.places.layers.empty()) {
    const DiskCache cache = open_cache(command.places);
    const StoredKernels stored = list_stored_kernels(cache);
    data.add_cache(stored, *cache.directory());
    is_damaged = !stored.damaged.empty();
  }
  print_result("{}", report_page(data.document()));
  return is_damaged ? ExitCode::failed : ExitCode::succeeded;
}

}  // namespace

void add_report_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("report", "Write an HTML page of the cache, or of bench runs");
  const auto report = std::make_shared<ReportCommand>();
  add_texts(
      *command, "runs", [report](const std::vector<std::string>& paths) { report->runs = paths; },
      "Files made by `attnjit bench --json` (default: the cache instead)");
  add_cache_places(*command, report->places);
  command->callback([&action, report] { action = [report] { return run(*report); }; });
}

}  // namespace attnjit
