// attnjit diff: in what two kernels differ: config, sources, PTX, what they use.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "json_document.hpp"
#include "kernel_facts.hpp"
#include "kernel_identity.hpp"
#include "kernel_source.hpp"
#include "kernel_stage.hpp"
#include "line_diff.hpp"
#include "standard_streams.hpp"
#include "stored_kernel.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

struct DiffCommand {
  KernelRequest request;  // of both; what: the first
  std::string other;      // the second
  bool with_ptx = false;
  bool only_cached = false;
  bool as_json = false;
};

struct Side {
  KernelSource source;
  std::string key;
  KernelIdentity identity;
  std::optional<KernelMetadata> metadata;  // unset of one that is not cached and not to be compiled
};

struct Comparison {
  std::vector<Difference> differences;
  std::string source;  // unified diffs, one per file that differs
  std::string ptx;
};

// Of an entry the text of its own key, not of the one that today's toolchain asks for.
KernelIdentity identity_of(const KernelSource& source, const KernelProvider& provider,
                           const std::string& key_text) {
  if (source.key.empty()) {
    return identify_kernel(key_text, source.kernel.config).value_or(KernelIdentity{});
  }
  const StoredKernel stored = find_stored_kernel(provider.cache(), source.key);
  const CacheLookup lookup = read_entry(stored.path);
  return identify_kernel(lookup.entry ? lookup.entry->key_text : key_text, source.kernel.config)
      .value_or(KernelIdentity{});
}

KernelSource find_source(const DiffCommand& command, const std::string& what) {
  KernelRequest request = command.request;
  if (looks_like_key(what) &&
      !(looks_like_key(command.request.what) && looks_like_key(command.other))) {
    // The options say which kernel the other side is.
    request = KernelRequest{};
    request.provider = command.request.provider;
    request.provider.templates.clear();
  }
  request.what = what;
  return find_kernel_source(request);
}

Side find_side(const DiffCommand& command, KernelSource source, KernelProvider& provider) {
  Side side{.source = std::move(source), .key = "", .identity = {}, .metadata = {}};
  const KernelLookup lookup = provider.look_up(side.source.kernel);
  side.key = side.source.key.empty() ? lookup.key.digest : side.source.key;
  side.identity = identity_of(side.source, provider, lookup.key.text);
  if (!command.only_cached || lookup.provided || !side.source.key.empty()) {
    side.metadata = binary_of(side.source, provider).metadata;
  } else {
    print_message("attnjit: {} for {} is not in the cache ({}): no resources of it\n",
                  side.source.kernel.name, side.source.kernel.arch, to_string(lookup.reason));
  }
  return side;
}

const std::string* find_header(const RenderedKernel& kernel, const std::string& name) {
  for (const SourceFile& header : kernel.headers) {
    if (header.name == name) {
      return &header.text;
    }
  }
  return nullptr;
}

std::string diff_sources(const RenderedKernel& left, const RenderedKernel& right) {
  std::string text =
      unified_diff("A/" + left.name + ".cu", left.source, "B/" + right.name + ".cu", right.source);
  for (const SourceFile& header : left.headers) {
    const std::string* other = find_header(right, header.name);
    text += unified_diff("A/" + header.name, header.text,
                         other == nullptr ? "/dev/null" : "B/" + header.name,
                         other == nullptr ? "" : *other);
  }
  for (const SourceFile& header : right.headers) {
    if (find_header(left, header.name) == nullptr) {
      text += unified_diff("/dev/null", "", "B/" + header.name, header.text);
    }
  }
  return text;
}

Comparison compare(const DiffCommand& command, const Side& left, const Side& right) {
  Comparison comparison{.differences = find_differences(left.identity, right.identity),
                        .source = diff_sources(left.source.kernel, right.source.kernel),
                        .ptx = ""};
  if (command.with_ptx) {
    comparison.ptx = unified_diff("A.ptx", ptx_of(left.source, command.request.provider), "B.ptx",
                                  ptx_of(right.source, command.request.provider));
  }
  return comparison;
}

bool is_source(const Difference& difference) {
  return difference.what == "source" || difference.what.starts_with("header ");
}

void print_sides(const Side& left, const Side& right, const Comparison& comparison) {
  constexpr std::array<TableColumn, 3> columns = {{{""}, {"A"}, {"B"}}};
  std::vector<std::vector<std::string>> rows = {
      {"kernel", left.source.kernel.name, right.source.kernel.name},
      {"key", left.key.substr(0, shown_key_digits), right.key.substr(0, shown_key_digits)}};
  for (const Difference& difference : comparison.differences) {
    if (!is_source(difference)) {
      rows.push_back({difference.what, difference.left.empty() ? "-" : difference.left,
                      difference.right.empty() ? "-" : difference.right});
    }
  }
  const auto facts = resource_facts(left.metadata.value_or(KernelMetadata{}));
  const auto others = resource_facts(right.metadata.value_or(KernelMetadata{}));
  for (std::size_t i = 0; i < facts.size(); ++i) {
    rows.push_back({facts[i].first, left.metadata ? facts[i].second : "-",
                    right.metadata ? others[i].second : "-"});
  }
  print_result("{}", format_table(columns, rows));
}

void print_text(const Side& left, const Side& right, const Comparison& comparison) {
  print_sides(left, right, comparison);
  if (comparison.source.empty()) {
    print_result("\nthe sources are equal\n");
  }
  for (const std::string& text : {comparison.source, comparison.ptx}) {
    if (!text.empty()) {
      print_result("\n{}", text);
    }
  }
}

Json to_document(const Side& side) {
  Json json = {{"name", side.source.kernel.name},
               {"arch", side.source.kernel.arch},
               {"key", side.key},
               {"toolchain", side.identity.toolchain},
               {"config", config_json(side.source.kernel.config)}};
  if (side.metadata) {
    json.update(resources_json(*side.metadata));
  }
  return json;
}

void print_json(const DiffCommand& command, const Side& left, const Side& right,
                const Comparison& comparison) {
  Json differences = Json::array();
  for (const Difference& difference : comparison.differences) {
    Json json = {{"what", difference.what}};
    if (!is_source(difference)) {
      json["a"] = difference.left;
      json["b"] = difference.right;
    }
    differences.push_back(std::move(json));
  }
  Json document = {{"schema", 1},
                   {"command", "diff"},
                   {"equal", comparison.differences.empty()},
                   {"a", to_document(left)},
                   {"b", to_document(right)},
                   {"differences", differences},
                   {"source", comparison.source}};
  if (command.with_ptx) {
    document["ptx"] = comparison.ptx;
  }
  print_result("{}\n", to_line(std::move(document)));
}

ExitCode run(const DiffCommand& command) {
  // Both, before one is compiled.
  KernelSource first = find_source(command, command.request.what);
  KernelSource second = find_source(command, command.other);
  KernelProvider provider(telling_options(command.request.provider));
  const Side left = find_side(command, std::move(first), provider);
  const Side right = find_side(command, std::move(second), provider);
  const Comparison comparison = compare(command, left, right);
  if (command.as_json) {
    print_json(command, left, right, comparison);
  } else {
    print_text(left, right, comparison);
  }
  return ExitCode::succeeded;
}

}  // namespace

void add_diff_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("diff", "Show in what two kernels differ");
  const auto diff = std::make_shared<DiffCommand>();
  constexpr const char* named = "descriptor (JSON text or file), model, or key";
  command->add_option("a", diff->request.what, std::string("The first: ") + named)->required();
  command->add_option("b", diff->other, std::string("The second: ") + named)->required();
  add_kernel_options(*command, diff->request);
  add_compiler_option(*command, diff->request);
  command->add_flag("--ptx", diff->with_ptx, "Compare the PTX too, made now");
  command->add_flag("--cached", diff->only_cached, "Compile nothing for the resources");
  command->add_flag("--json", diff->as_json, "Print one JSON document");
  command->callback([&action, diff] { action = [diff] { return run(*diff); }; });
}

}  // namespace attnjit
