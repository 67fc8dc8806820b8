// attnjit caps: which calls this version serves, by which kernel, and which it refuses.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "attnjit/descriptor_json.hpp"
#include "attnjit/support_matrix.hpp"
#include "caps_table.hpp"
#include "command.hpp"
#include "standard_streams.hpp"
#include "target_arguments.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

struct CapsCommand {
  TargetArguments target;
  bool as_json = false;
  bool as_markdown = false;
};

Json to_document(const std::vector<TargetDevice>& targets) {
  Json document = Json::array();
  for (const TargetDevice& target : targets) {
    document.push_back({{"name", target.name}, {"arch", target.arch}});
  }
  return document;
}

Json names_of(const std::vector<ProbedValue>& values) {
  Json names = Json::array();
  for (const ProbedValue& each : values) {
    names.push_back(each.value);
  }
  return names;
}

Json to_document(const ServedRow& row) {
  Json axes = Json::object();
  for (const ServedAxis& axis : row.axes) {
    axes[axis.axis] = names_of(axis.values);
  }
  return {{"operation", to_string(row.operation)},
          {"kernel", row.kernel},
          {"targets", to_document(row.targets)},
          {"axes", axes}};
}

Json to_document(const Refusal& refusal) {
  return {{"operation", to_string(refusal.operation)},
          {"field", refusal.field},
          {"refused", names_of(refusal.values)},
          {"rule", refusal.rule},
          {"fix", refusal.fix},
          {"example", Json::parse(to_json(refusal.values.front().call))}};
}

Json to_document(const SupportMatrix& matrix) {
  Json served = Json::array();
  for (const ServedRow& row : matrix.rows) {
    served.push_back(to_document(row));
  }
  Json refused = Json::array();
  for (const Refusal& refusal : matrix.refusals) {
    refused.push_back(to_document(refusal));
  }
  return {{"schema", 1},
          {"command", "caps"},
          {"targets", to_document(matrix.targets)},
          {"served", served},
          {"refused", refused}};
}

ExitCode run(const CapsCommand& command) {
  const SupportMatrix matrix = make_support_matrix(find_targets(command.target));
  if (command.as_json) {
    print_result("{}\n", to_document(matrix).dump());
  } else {
    print_result("{}", command.as_markdown ? format_markdown(matrix) : format_text(matrix));
  }
  return ExitCode::succeeded;
}

}  // namespace

// The answer is about this version, not about this machine: by default one target per family of
// kernels.
void add_caps_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("caps", "Say which calls are served, by which kernel, and which refused");
  const auto caps = std::make_shared<CapsCommand>();
  add_target_arguments(*command, caps->target);
  command->get_option("--arch")->description(
      "Architectures or cards, e.g. sm_90a,rtx4090 (default: sm_80,sm_90a)");
  CLI::Option* json = command->add_flag("--json", caps->as_json, "Print one JSON document");
  command->add_flag("--markdown", caps->as_markdown, "Print the section of README.md")
      ->excludes(json);
  command->callback([&action, caps] {
    action = [caps] {
      if (caps->target.names.empty()) {
        caps->target.names = {"sm_80", "sm_90a"};
      }
      return run(*caps);
    };
  });
}

}  // namespace attnjit
