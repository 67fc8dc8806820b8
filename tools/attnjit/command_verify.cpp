// attnjit verify: whether every entry of a cache and its layers is good, and whether all kernels of
// a plan are there.
#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/shown_text.hpp"
#include "cache_places.hpp"
#include "command.hpp"
#include "decode_source.hpp"
#include "entry_check.hpp"
#include "json_document.hpp"
#include "plan_comparison.hpp"
#include "standard_streams.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct VerifyCommand {
  CachePlaces places;
  fs::path plan;
  TargetArguments targets;
  bool repairs = false;
  bool as_json = false;
};

struct BadEntry {
  std::string place;
  std::string key;
  std::string problem;
  bool is_repaired = false;
};

struct Verification {
  std::size_t entries = 0;
  std::size_t kernels = 0;
  std::vector<BadEntry> bad;
  std::optional<PlanComparison> plan;
};

// Notes the entry; true if it is bad.
bool verify_entry(const StoredEntry& entry, const CacheLookup& lookup, Verification& verification) {
  const CheckedEntry checked = check_entry(entry.digest, lookup);
  verification.entries += 1;
  verification.kernels += checked.kernel ? 1 : 0;
  if (!checked.problem.empty()) {
    verification.bad.push_back({entry.path.string(), entry.digest, checked.problem, false});
  }
  return !checked.problem.empty();
}

// A directory of the cache that cannot be listed hides what is in it.
void verify_readable(const fs::path& directory, Verification& verification) {
  std::error_code error;
  for (fs::directory_iterator each(directory, error), end; !error && each != end;
       each.increment(error)) {
    std::error_code inner;
    if (each->symlink_status(inner).type() == fs::file_type::directory) {
      verify_readable(each->path(), verification);
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    verification.bad.push_back(
        {directory.string(), "", "cannot be listed: " + error.message(), false});
  }
}

void verify_directory(const DiskCache& cache, bool repairs, Verification& verification) {
  verify_readable(*cache.directory(), verification);
  for (const StoredEntry& entry : cache.list()) {
    if (verify_entry(entry, read_entry(entry.path), verification) && repairs) {
      verification.bad.back().is_repaired = cache.quarantine(entry);
    }
  }
}

void verify_layer(const CacheLayer& layer, Verification& verification) {
  const LayerState state = layer.state();
  if (state.kind == LayerKind::missing || state.kind == LayerKind::unusable) {
    verification.bad.push_back({layer.path().string(), "", state.problem, false});
  }
  for (const StoredEntry& entry : layer.list()) {
    verify_entry(entry, layer.read(entry.digest), verification);
  }
}

void print_text(const Verification& verification) {
  for (const BadEntry& bad : verification.bad) {
    print_result("bad: {}{}: {}{}\n", bad.place, bad.key.empty() ? "" : ", key " + bad.key,
                 bad.problem, bad.is_repaired ? "; put aside, the next compile replaces it" : "");
  }
  if (verification.plan) {
    for (const MissingKernel& missing : verification.plan->missing) {
      print_result("missing: {} for {}, key {}: {}\n", missing.name, missing.arch, missing.key,
                   missing.reason);
    }
    print_result("{} of the plan's {} missing\n", verification.plan->missing.size(),
                 count_of(verification.plan->wanted, "kernel"));
  }
  print_result("{} entries, {} of them kernels: {} bad\n", verification.entries,
               verification.kernels, verification.bad.size());
}

Json plan_json(const PlanComparison& plan) {
  Json missing = Json::array();
  for (const MissingKernel& kernel : plan.missing) {
    missing.push_back({{"name", kernel.name},
                       {"arch", kernel.arch},
                       {"key", kernel.key},
                       {"reason", kernel.reason}});
  }
  return {{"wanted", plan.wanted}, {"missing", missing}};
}

void print_json(const Verification& verification, const DiskCache& cache) {
  Json bad = Json::array();
  for (const BadEntry& entry : verification.bad) {
    bad.push_back({{"place", entry.place},
                   {"key", entry.key},
                   {"problem", entry.problem},
                   {"repaired", entry.is_repaired}});
  }
  Json document = {{"schema", 1}, {"command", "verify"}};
  set_path(document, "cache_directory", *cache.directory());
  document.update({{"entries", verification.entries},
                   {"kernels", verification.kernels},
                   {"bad", std::move(bad)}});
  if (verification.plan) {
    document["against"] = plan_json(*verification.plan);
  }
  print_result("{}\n", to_line(std::move(document)));
}

bool is_good(const Verification& verification) {
  for (const BadEntry& bad : verification.bad) {
    if (!bad.is_repaired) {
      return false;
    }
  }
  return !verification.plan || verification.plan->missing.empty();
}

ExitCode run(const VerifyCommand& command) {
  refuse_option(command.plan.empty() && !command.targets.names.empty(), "--arch", "no --against");
  const DiskCache cache = open_cache(command.places);
  // With layers or a plan there is more to look at, and a directory may be made later.
  const bool is_all = command.plan.empty() && cache.layers().empty();
  if (is_all && !command.places.directory.empty() && !fs::exists(*cache.directory())) {
    throw UsageError(fmt::format("--cache-dir = {}: is not there; fix: name the cache to verify",
                                 shown_text(cache.directory()->string())));
  }
  if (command.repairs) {
    require_trusted(cache);
  }
  Verification verification;
  verify_directory(cache, command.repairs, verification);
  for (const CacheLayer& layer : cache.layers()) {
    verify_layer(layer, verification);
  }
  if (!command.plan.empty()) {
    verification.plan = compare_with_plan(command.places, command.plan, command.targets);
  }
  if (command.as_json) {
    print_json(verification, cache);
  } else {
    print_text(verification);
  }
  return is_good(verification) ? ExitCode::succeeded : ExitCode::failed;
}

}  // namespace

void add_verify_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand(
      "verify", "Check every entry of the cache, and that a plan's kernels are there");
  const auto verify = std::make_shared<VerifyCommand>();
  add_cache_places(*command, verify->places);
  command->add_flag("--repair", verify->repairs,
                    "Put bad entries of the cache directory aside, as <name>.bad");
  command->add_option("--against", verify->plan,
                      "JSON of `attnjit plan` or `attnjit warm`: say which kernels are missing");
  add_target_arguments(*command, verify->targets);
  command->add_flag("--json", verify->as_json, "Print one JSON document");
  command->callback([&action, verify] { action = [verify] { return run(*verify); }; });
}

}  // namespace attnjit
