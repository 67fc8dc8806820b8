// attnjit why: which key a kernel has, where it was looked for, and why it is not there.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/shown_text.hpp"
#include "command.hpp"
#include "decode_source.hpp"
#include "json_document.hpp"
#include "kernel_facts.hpp"
#include "kernel_identity.hpp"
#include "kernel_source.hpp"
#include "near_kernels.hpp"
#include "standard_streams.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t most_near_kernels = 3;
constexpr std::size_t most_shown_differences = 8;
constexpr std::size_t shown_path_bytes = 4096;

struct WhyCommand {
  KernelRequest request;
  bool prints_key_text = false;
  bool as_json = false;
};

// A place that was asked for the key.
struct Probe {
  fs::path place;
  std::string outcome;  // "hit", or the reason of the miss
  std::string detail;
};

struct Account {
  RenderedKernel kernel;
  std::string stored_key;  // that was named; empty if none was
  KernelLookup lookup;     // of what this process would ask for
  KernelIdentity identity;
  std::vector<Probe> probes;
  std::vector<NearKernel> near;  // of a miss
};

// Every place in the order in which it is asked. A whole entry that the provider yet did not take
// is a miss by its reason.
std::vector<Probe> probe(const DiskCache& cache, const KernelLookup& lookup) {
  std::vector<Probe> probes;
  for (const LayerProbe& layer : cache.probe(lookup.key)) {
    const bool is_refused = layer.lookup.entry && !lookup.provided;
    const MissReason reason = is_refused ? lookup.reason : layer.lookup.reason;
    const bool is_hit = layer.lookup.entry && !is_refused;
    probes.push_back({layer.place, is_hit ? "hit" : std::string(to_string(reason)),
                      is_refused ? lookup.detail : layer.lookup.detail});
  }
  return probes;
}

Account account_for(const KernelSource& source, const KernelProvider& provider) {
  Account account{.kernel = source.kernel,
                  .stored_key = source.key,
                  .lookup = provider.look_up(source.kernel),
                  .identity = {},
                  .probes = {},
                  .near = {}};
  account.identity =
      identify_kernel(account.lookup.key.text, source.kernel.config).value_or(KernelIdentity{});
  account.probes = probe(provider.cache(), account.lookup);
  if (!account.lookup.provided) {
    account.near = find_near_kernels(provider.cache(), account.identity, most_near_kernels);
  }
  return account;
}

std::string verdict_of(const Account& account) {
  return account.lookup.provided ? "hit"
                                 : fmt::format("miss ({})", to_string(account.lookup.reason));
}

std::string toolchain_of(const Account& account, const std::string& compiler_problem) {
  const std::string& identity = account.identity.toolchain;
  if (compiler_problem.empty()) {
    return identity;
  }
  return identity.empty()
             ? fmt::format("none, so no entry can be found: {}", compiler_problem)
             : fmt::format("{} (on record in the cache, for there is no compiler)", identity);
}

void print_text(const Account& account, const std::string& compiler_problem) {
  print_result("{} for {}: {}\n", account.kernel.name, account.kernel.arch, verdict_of(account));
  const auto line = [](std::string_view name, std::string_view value) {
    print_result("  {:<10} {}\n", name, value);
  };
  line("key", account.lookup.key.digest);
  if (!account.stored_key.empty() && account.stored_key != account.lookup.key.digest) {
    line("",
         fmt::format("{} was named; today's toolchain asks for the one above", account.stored_key));
  }
  line("toolchain", toolchain_of(account, compiler_problem));
  line("key text",
       fmt::format("{} bytes: {}, {}, {}; --key-text prints it", account.lookup.key.text.size(),
                   count_of(account.identity.options.size(), "option"), account.kernel.entry,
                   count_of(account.kernel.headers.size(), "header")));
  for (const Probe& probe : account.probes) {
    line("probed", fmt::format("{}: {}{}", shown_text(probe.place.string(), shown_path_bytes),
                               probe.outcome, probe.detail.empty() ? "" : ", " + probe.detail));
  }
  for (const NearKernel& near : account.near) {
    line("near", fmt::format("{}, which differs in", near.digest.substr(0, shown_key_digits)));
    for (std::size_t i = 0; i < near.differences.size() && i < most_shown_differences; ++i) {
      line("", "  " + describe(near.differences[i]));
    }
    if (near.differences.size() > most_shown_differences) {
      line("", fmt::format("  and {} more", near.differences.size() - most_shown_differences));
    }
  }
}

Json to_document(const Account& account, const std::string& compiler_problem) {
  Json probes = Json::array();
  for (const Probe& probe : account.probes) {
    Json json = Json::object();
    set_path(json, "place", probe.place);
    json["outcome"] = probe.outcome;
    json["detail"] = probe.detail;
    probes.push_back(std::move(json));
  }
  Json near = Json::array();
  for (const NearKernel& each : account.near) {
    std::vector<std::string> differences;
    for (const Difference& difference : each.differences) {
      differences.push_back(describe(difference));
    }
    near.push_back({{"key", each.digest}, {"differences", differences}});
  }
  Json document = {{"name", account.kernel.name},
                   {"arch", account.kernel.arch},
                   {"config", config_json(account.kernel.config)},
                   {"hit", account.lookup.provided.has_value()},
                   {"key", account.lookup.key.digest},
                   {"toolchain", account.identity.toolchain},
                   {"compiler_problem", compiler_problem},
                   {"probes", probes},
                   {"near", near}};
  if (!account.lookup.provided) {
    document["reason"] = to_string(account.lookup.reason);
  }
  if (!account.stored_key.empty()) {
    document["named_key"] = account.stored_key;
  }
  return document;
}

void print_key_text(const std::vector<KernelSource>& sources, const KernelProvider& provider) {
  if (sources.size() > 1) {
    throw UsageError(
        fmt::format("--key-text is of one kernel, and {} are named; fix: name one "
                    "with --kernel, --layer and --phase, or by its key",
                    sources.size()));
  }
  write_text(stdout, provider.look_up(sources.front().kernel).key.text);
}

ExitCode run(const WhyCommand& command) {
  const std::vector<KernelSource> sources = find_kernel_sources(command.request);
  const KernelProvider provider(command.request.provider);
  refuse_option(command.prints_key_text && command.as_json, "--json", "--key-text");
  if (command.prints_key_text) {
    print_key_text(sources, provider);
    return ExitCode::succeeded;
  }
  const std::string problem = provider.compiler_problem();
  Json kernels = Json::array();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Account account = account_for(sources[i], provider);
    if (command.as_json) {
      kernels.push_back(to_document(account, problem));
    } else {
      print_result("{}", i == 0 ? "" : "\n");
      print_text(account, problem);
    }
  }
  if (command.as_json) {
    print_result("{}\n", to_line({{"schema", 1}, {"command", "why"}, {"kernels", kernels}}));
  }
  return ExitCode::succeeded;
}

}  // namespace

void add_why_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand(
      "why", "Say which key a kernel has, where it is looked for, and why it is not there");
  const auto why = std::make_shared<WhyCommand>();
  add_kernel_arguments(*command, why->request);
  add_compiler_option(*command, why->request);
  command->add_flag("--key-text", why->prints_key_text, "Print the text of the key and end");
  command->add_flag("--json", why->as_json, "Print one JSON document");
  command->callback([&action, why] { action = [why] { return run(*why); }; });
}

}  // namespace attnjit
