// attnjit ls: which kernels the cache holds, each entry read and verified.
#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/shown_text.hpp"
#include "cache_places.hpp"
#include "command.hpp"
#include "json_document.hpp"
#include "kernel_facts.hpp"
#include "standard_streams.hpp"
#include "stored_kernel.hpp"
#include "stored_kernel_json.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct LsCommand {
  CachePlaces places;
  bool as_json = false;
};

constexpr std::array<TableColumn, 8> columns = {{{"kernel"},
                                                 {"target"},
                                                 {"registers", Alignment::right},
                                                 {"spills", Alignment::right},
                                                 {"cubin KB", Alignment::right},
                                                 {"compile ms", Alignment::right},
                                                 {"key"},
                                                 {"config"}}};

// "dtype=bf16 head_dim_qk=576 …": every field but the kernel's name, which has its own column. The
// text as it stands where another version wrote no JSON object.
std::string shown_config(const std::string& config) {
  std::string text;
  for (const auto& [name, value] : config_fields(config)) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text.empty() ? config : text;
}

std::vector<std::string> table_row(const StoredKernel& stored) {
  const KernelResources& resources = stored.metadata.resources;
  return {stored.metadata.name,
          stored.metadata.arch,
          fmt::format("{}", resources.registers),
          fmt::format("{}", spill_bytes(stored.metadata)),
          fmt::format("{:.1f}", static_cast<double>(stored.cubin_bytes) / 1024),
          fmt::format("{:.0f}", stored.metadata.compile_milliseconds),
          stored.digest.substr(0, shown_key_digits),
          shown_config(stored.metadata.config)};
}

void print_text(const StoredKernels& stored, const std::string& place) {
  std::vector<std::vector<std::string>> rows;
  for (const StoredKernel& kernel : stored.kernels) {
    rows.push_back(table_row(kernel));
  }
  if (!rows.empty()) {
    print_result("{}\n", format_table(columns, rows));
  }
  print_result("{}: {} in {} {}, {:.1f} MiB\n", place, count_of(stored.kernels.size(), "kernel"),
               stored.num_entries, stored.num_entries == 1 ? "entry" : "entries",
               static_cast<double>(stored.total_bytes) / (1 << 20));
  for (const DamagedEntry& entry : stored.damaged) {
    print_message("attnjit: damaged ({}): {}; fix: run `attnjit warm` again, which replaces it\n",
                  to_string(entry.reason), entry.detail);
  }
}

void print_json(const StoredKernels& stored, const fs::path& place) {
  Json kernels = Json::array();
  for (const StoredKernel& kernel : stored.kernels) {
    kernels.push_back(to_json(kernel));
  }
  Json document = {{"schema", 1}, {"command", "ls"}};
  set_path(document, "cache_directory", place);
  document["num_entries"] = stored.num_entries;
  document["total_bytes"] = stored.total_bytes;
  document["kernels"] = std::move(kernels);
  document["damaged"] = to_json(stored.damaged);
  print_result("{}\n", to_line(std::move(document)));
}

ExitCode run(const LsCommand& command) {
  const DiskCache cache = open_cache(command.places);
  const StoredKernels stored = list_stored_kernels(cache);
  if (command.as_json) {
    print_json(stored, *cache.directory());
  } else {
    print_text(stored, cache.directory()->string());
  }
  return stored.damaged.empty() ? ExitCode::succeeded : ExitCode::failed;
}

}  // namespace

void add_ls_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("ls", "List and verify the kernels in the cache");
  const auto ls = std::make_shared<LsCommand>();
  add_cache_places(*command, ls->places);
  command->add_flag("--json", ls->as_json, "Print one JSON document");
  command->callback([&action, ls] { action = [ls] { return run(*ls); }; });
}

}  // namespace attnjit
