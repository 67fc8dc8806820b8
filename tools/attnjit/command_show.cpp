// attnjit show: everything that the cache's entries of a kernel hold.
#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "attnjit/shown_text.hpp"
#include "command.hpp"
#include "json_document.hpp"
#include "kernel_facts.hpp"
#include "kernel_source.hpp"
#include "key_sections.hpp"
#include "standard_streams.hpp"
#include "stored_kernel.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct ShowCommand {
  KernelRequest request;
  bool as_json = false;
};

// An entry, read.
struct ShownEntry {
  StoredKernel stored;
  std::chrono::sys_seconds written;
};

struct ShownEntries {
  std::vector<ShownEntry> entries;
  std::vector<std::string> missing;  // a sentence each
};

ShownEntry read_shown(const DiskCache& cache, const std::string& key) {
  ShownEntry shown{.stored = find_stored_kernel(cache, key), .written = {}};
  std::error_code ignored;
  const auto time = fs::last_write_time(shown.stored.path, ignored);
  shown.written = std::chrono::floor<std::chrono::seconds>(std::chrono::file_clock::to_sys(time));
  return shown;
}

ShownEntries find_entries(const KernelRequest& request) {
  const std::vector<KernelSource> sources = find_kernel_sources(request);
  const KernelProvider provider(request.provider);
  ShownEntries shown;
  for (const KernelSource& source : sources) {
    if (!source.key.empty()) {
      shown.entries.push_back(read_shown(provider.cache(), source.key));
      continue;
    }
    const KernelLookup lookup = provider.look_up(source.kernel);
    if (lookup.provided) {
      shown.entries.push_back(read_shown(provider.cache(), lookup.key.digest));
    } else {
      shown.missing.push_back(
          fmt::format("{} for {} is not in the cache ({}); fix: see `attnjit "
                      "why`, or compile it with `attnjit res` or `warm`",
                      source.kernel.name, source.kernel.arch, to_string(lookup.reason)));
    }
  }
  return shown;
}

// "3 h ago"; a clock that went back gives 0 s.
std::string age_of(std::chrono::sys_seconds written) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const auto seconds = std::max<long long>((now - written).count(), 0);
  constexpr std::array<std::pair<long long, const char*>, 3> units = {
      {{86400, "days"}, {3600, "h"}, {60, "min"}}};
  for (const auto& [length, unit] : units) {
    if (seconds >= 2 * length) {
      return fmt::format("{} {} ago", seconds / length, unit);
    }
  }
  return fmt::format("{} s ago", seconds);
}

std::string time_text(std::chrono::sys_seconds time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

std::vector<std::string> options_of(const std::vector<KeySection>& sections) {
  std::vector<std::string> options;
  for (const KeySection& section : sections) {
    if (section.tag == "option") {
      options.emplace_back(section.bytes);
    }
  }
  return options;
}

// A header's name and text are two sections of one thing.
std::string describe_section(const KeySection& section) {
  const bool is_short = section.tag == "header" || section.tag == "option" ||
                        section.tag == "arch" || section.tag == "entry" ||
                        section.tag == "schema" || section.tag == "toolchain";
  return is_short ? fmt::format("{} {}", section.tag, shown_text(section.bytes, 200))
                  : fmt::format("{}, {} bytes", section.tag, section.bytes.size());
}

void print_text(const ShownEntry& entry) {
  const StoredKernel& stored = entry.stored;
  const KernelMetadata& metadata = stored.metadata;
  const auto line = [](std::string_view name, std::string_view value) {
    print_result("{:<15} {}\n", name, value);
  };
  const auto sections = split_key_text(entry.stored.key_text).value_or(std::vector<KeySection>{});
  line("key", stored.digest);
  line("kernel", metadata.name);
  line("entry point", metadata.entry);
  line("target", metadata.arch);
  line("toolchain", metadata.toolchain);
  line("options", fmt::format("{}", fmt::join(options_of(sections), " ")));
  for (const auto& [name, value] : resource_facts(metadata)) {
    line(name, value);
  }
  line("cubin bytes", fmt::format("{}", stored.cubin_bytes));
  line("compile ms", fmt::format("{:.0f}", metadata.compile_milliseconds));
  line("notes",
       metadata.notes.empty() ? "none" : fmt::format("{}", fmt::join(metadata.notes, "; ")));
  line("path", shown_text(stored.path.string(), 4096));
  line("entry bytes", fmt::format("{}", stored.entry_bytes));
  line("written", fmt::format("{}, {}", time_text(entry.written), age_of(entry.written)));
  print_result("config\n");
  for (const auto& [name, value] : config_fields(metadata.config)) {
    print_result("  {} = {}\n", name, value);
  }
  print_result("key text, {} bytes\n", entry.stored.key_text.size());
  for (const KeySection& section : sections) {
    print_result("  {}\n", describe_section(section));
  }
}

Json to_document(const ShownEntry& entry) {
  const StoredKernel& stored = entry.stored;
  const KernelMetadata& metadata = stored.metadata;
  const auto sections = split_key_text(entry.stored.key_text).value_or(std::vector<KeySection>{});
  Json listed = Json::array();
  for (const KeySection& section : sections) {
    Json json = {{"tag", section.tag}, {"bytes", section.bytes.size()}};
    if (section.tag != "source" && section.tag != "text") {
      json["value"] = section.bytes;
    }
    listed.push_back(std::move(json));
  }
  Json document = {{"key", stored.digest},
                   {"name", metadata.name},
                   {"entry", metadata.entry},
                   {"arch", metadata.arch},
                   {"toolchain", metadata.toolchain},
                   {"options", options_of(sections)},
                   {"config", config_json(metadata.config)}};
  document.update(resources_json(metadata));
  document["cubin_bytes"] = stored.cubin_bytes;
  document["compile_milliseconds"] = metadata.compile_milliseconds;
  document["notes"] = metadata.notes;
  set_path(document, "path", stored.path);
  document["entry_bytes"] = stored.entry_bytes;
  document["written"] = time_text(entry.written);
  document["key_sections"] = std::move(listed);
  return document;
}

ExitCode run(const ShowCommand& command) {
  const ShownEntries shown = find_entries(command.request);
  for (const std::string& sentence : shown.missing) {
    print_message("attnjit: {}\n", sentence);
  }
  if (command.as_json) {
    Json entries = Json::array();
    for (const ShownEntry& entry : shown.entries) {
      entries.push_back(to_document(entry));
    }
    print_result("{}\n", to_line({{"schema", 1},
                                  {"command", "show"},
                                  {"entries", entries},
                                  {"missing", shown.missing}}));
  } else {
    for (std::size_t i = 0; i < shown.entries.size(); ++i) {
      print_result("{}", i == 0 ? "" : "\n");
      print_text(shown.entries[i]);
    }
  }
  return shown.missing.empty() ? ExitCode::succeeded : ExitCode::failed;
}

}  // namespace

void add_show_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("show", "Show everything that a kernel's entry holds");
  const auto show = std::make_shared<ShowCommand>();
  add_kernel_arguments(*command, show->request);
  add_compiler_option(*command, show->request);
  command->add_flag("--json", show->as_json, "Print one JSON document");
  command->callback([&action, show] { action = [show] { return run(*show); }; });
}

}  // namespace attnjit
