// attnjit explain: which attention kernel serves each call of a model or of a descriptor on a
// target, and, of a decode, what every other one needs that it does not have.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_json.hpp"
#include "command.hpp"
#include "decode_source.hpp"
#include "plan_arguments.hpp"
#include "standard_streams.hpp"
#include "target_arguments.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

struct ExplainCommand {
  PlanArguments plan;  // plan.model: a model, or a descriptor as JSON
  TargetArguments target;
  bool as_json = false;
};

const std::vector<Operation> explained_operations = {
    Operation::decode,           Operation::prefill,           Operation::prefill_kvcache,
    Operation::mla_prefill_rope, Operation::sparse_mla_decode, Operation::sparse_mla_prefill};

struct Explanation {
  AttentionDescriptor descriptor;
  Phase phase;
  std::vector<int> layers;  // of a model
  TargetDevice target;
  std::vector<KernelCandidate> candidates;  // of a decode
  std::vector<KernelConfig> configs;
  const TunedRow* tuned;  // that says so; null: the model does
};

std::size_t index_of_taken(const Explanation& explanation) {
  const std::vector<KernelCandidate>& candidates = explanation.candidates;
  const std::string_view name = kernel_name(explanation.configs.front());
  const auto taken =
      std::find_if(candidates.begin(), candidates.end(),
                   [&](const KernelCandidate& candidate) { return candidate.kernel == name; });
  return static_cast<std::size_t>(taken - candidates.begin());
}

Explanation explain(const PlannedDescriptor& call, const TargetDevice& target) {
  Explanation explanation = {call.descriptor, call.phase, call.layers,
                             target,          {},         select_configs(call.descriptor, target),
                             nullptr};
  if (call.descriptor.operation == Operation::decode) {
    explanation.candidates = attention_candidates(call.descriptor, target);
    explanation.tuned = find_tuned_row(call.descriptor, target);
  }
  return explanation;
}

std::vector<Explanation> explain(const PlannedCalls& calls,
                                 const std::vector<TargetDevice>& targets) {
  std::vector<Explanation> explanations;
  for (const PlannedDescriptor& call : calls.served) {
    for (const TargetDevice& target : targets) {
      explanations.push_back(explain(call, target));
    }
  }
  return explanations;
}

std::string verdict(const Explanation& explanation, std::size_t i) {
  const std::vector<KernelCandidate>& candidates = explanation.candidates;
  const std::size_t taken = index_of_taken(explanation);
  if (i == taken) {
    return "taken";
  }
  if (!candidates[i].unmet.empty()) {
    return fmt::format("{}", fmt::join(candidates[i].unmet, "; "));
  }
  return fmt::format("could serve it, {} {}",
                     i < taken ? "was measured to be slower than" : "comes after",
                     candidates[taken].kernel);
}

// Whether a measurement or the model chose.
std::string origin(const Explanation& explanation) {
  return explanation.tuned != nullptr
             ? fmt::format("chosen by a tuned row of {}: {}", explanation.tuned->date,
                           describe(explanation.tuned->knobs))
             : "chosen by the model: no tuned row for this decode on this card";
}

std::string heading(const Explanation& explanation) {
  const AttentionDescriptor& descriptor = explanation.descriptor;
  const std::string who =
      explanation.layers.empty()
          ? std::string(to_string(explanation.phase))
          : describe(KernelUse{explanation.phase, explanation.layers, ""}) + ":";
  const auto count = [](int number, std::string_view noun) {
    return count_of(static_cast<std::size_t>(number), noun);
  };
  const std::string tokens = descriptor.max_seqlen_q == 0
                                 ? "any number of query tokens"
                                 : "up to " + count(descriptor.max_seqlen_q, "query token");
  const std::string keys = descriptor.page_size > 0 ? fmt::format("page {}", descriptor.page_size)
                                                    : std::string(to_string(descriptor.kv_layout));
  return fmt::format(
      "{} {}/{}, {}, {}, {}, {}, {}, mask {}{}, on {} ({})", who, descriptor.head_dim_qk,
      descriptor.head_dim_v, count(descriptor.num_q_heads, "query head"),
      count(descriptor.num_kv_heads, "kv head"), tokens, describe_types(descriptor), keys,
      describe_mask(descriptor), descriptor.batch_invariant ? ", batch-invariant" : "",
      explanation.target.name, explanation.target.arch);
}

// Why a call has the kernels that it has.
std::string reasons(const Explanation& explanation) {
  if (explanation.descriptor.sparsity == Sparsity::token) {
    return "one kernel serves all token-sparse attention; its tile follows from the heads, the "
           "encoding and the card\n";
  }
  if (explanation.phase == Phase::prefill) {
    return explanation.descriptor.batch_invariant
               ? "one kernel serves every prefill; its tile follows from the call and the card; "
                 "thread blocks never share a tile's keys, for parts would follow the batch\n"
               : "one kernel serves every prefill; its tile follows from the call and the card; "
                 "where few query rows leave a GPU idle, several thread blocks share their keys, "
                 "and a second merges\n";
  }
  constexpr std::array<TableColumn, 2> columns = {{{"attention kernel"}, {"why"}}};
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < explanation.candidates.size(); ++i) {
    rows.push_back({explanation.candidates[i].kernel, verdict(explanation, i)});
  }
  return fmt::format("{}{}\n", format_table(columns, rows), origin(explanation));
}

void print_text(const std::vector<Explanation>& explanations) {
  for (const Explanation& explanation : explanations) {
    print_result("{}\n{}", heading(explanation), reasons(explanation));
    for (const KernelConfig& config : explanation.configs) {
      print_result("{}: {}\n", to_string(role_of(config)), describe(config));
    }
    print_result("\n");
  }
}

Json to_document(const Explanation& explanation) {
  Json configs = Json::array();
  for (const KernelConfig& config : explanation.configs) {
    configs.push_back(Json::parse(to_json(config)));
  }
  Json document = {{"layers", explanation.layers},
                   {"descriptor", Json::parse(to_json(explanation.descriptor))},
                   {"target", explanation.target.name},
                   {"arch", explanation.target.arch},
                   {"configs", configs}};
  if (explanation.candidates.empty()) {
    return document;
  }
  Json candidates = Json::array();
  const std::size_t taken = index_of_taken(explanation);
  for (std::size_t i = 0; i < explanation.candidates.size(); ++i) {
    candidates.push_back({{"kernel", explanation.candidates[i].kernel},
                          {"taken", i == taken},
                          {"unmet", explanation.candidates[i].unmet}});
  }
  document["candidates"] = candidates;
  document["tuned"] = explanation.tuned != nullptr;
  document["origin"] = origin(explanation);
  return document;
}

Json to_document(const RefusedDescriptor& refused) {
  Json reasons = Json::array();
  for (const Violation& violation : refused.violations) {
    reasons.push_back(to_string(violation));
  }
  return {{"phase", to_string(refused.use.phase)},
          {"layers", refused.use.layers},
          {"reasons", reasons}};
}

ExitCode run(const ExplainCommand& command) {
  const std::vector<TargetDevice> targets = find_targets(command.target);
  const PlannedCalls calls = find_calls(command.plan, explained_operations);
  const std::vector<Explanation> explanations = explain(calls, targets);
  if (!command.as_json) {
    print_text(explanations);
    return ExitCode::succeeded;
  }
  Json decodes = Json::array();
  Json prefills = Json::array();
  for (const Explanation& explanation : explanations) {
    (explanation.phase == Phase::decode ? decodes : prefills).push_back(to_document(explanation));
  }
  Json refused = Json::array();
  for (const RefusedDescriptor& each : calls.refused) {
    refused.push_back(to_document(each));
  }
  const Json document = {{"schema", 1},
                         {"command", "explain"},
                         {"decodes", decodes},
                         {"prefills", prefills},
                         {"refused", refused}};
  print_result("{}\n", document.dump());
  return ExitCode::succeeded;
}

}  // namespace

void add_explain_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("explain", "Say which kernels serve a call, and why not others");
  const auto explain_command = std::make_shared<ExplainCommand>();
  add_plan_arguments(*command, explain_command->plan);
  command->get_option("model")->description(
      "Model (config.json or preset) or descriptor (JSON text or file) to explain");
  add_target_arguments(*command, explain_command->target);
  command->add_flag("--json", explain_command->as_json, "Print one JSON document");
  command->callback(
      [&action, explain_command] { action = [explain_command] { return run(*explain_command); }; });
}

}  // namespace attnjit
