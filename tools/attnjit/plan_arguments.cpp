#include "plan_arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "model_source.hpp"

namespace attnjit {
namespace {

using Names = std::vector<std::string>;

// The enumerator of that name; the parser's check has refused all names but those of `values`.
template <typename Enum>
Enum find_by_name(const std::vector<Enum>& values, const std::string& name) {
  return *std::find_if(values.begin(), values.end(),
                       [&](Enum value) { return to_string(value) == name; });
}

template <typename Enum>
Names names_of(const std::vector<Enum>& values) {
  Names names;
  for (const Enum value : values) {
    names.emplace_back(to_string(value));
  }
  return names;
}

void add_dtype(CLI::App& command, const std::string& name, DataType& dtype,
               const std::vector<DataType>& values, const std::string& description) {
  command
      .add_option_function<std::string>(
          name, [&dtype, values](const std::string& text) { dtype = find_by_name(values, text); },
          description)
      ->check(CLI::IsMember(names_of(values)));
}

void add_phases(CLI::App& command, std::vector<Phase>& phases) {
  const std::vector<Phase> values = {Phase::decode, Phase::prefill};
  command
      .add_option_function<Names>(
          "--phases",
          [&phases, values](const Names& names) {
            phases.clear();
            for (const std::string& name : names) {
              phases.push_back(find_by_name(values, name));
            }
          },
          "decode, prefill or both (default decode,prefill)")
      ->delimiter(',')
      ->check(CLI::IsMember(names_of(values)));
}

}  // namespace

void add_deployment_options(CLI::App& command, PlanOptions& options) {
  command.add_option("--tp", options.tensor_parallel, "Ranks that share the heads")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  add_dtype(command, "--dtype", options.dtype, {DataType::bf16, DataType::fp16},
            "Type of q and out (default bf16)");
  add_dtype(command, "--kv-dtype", options.dtype_kv,
            {DataType::bf16, DataType::fp16, DataType::fp8_e4m3, DataType::fp8_e5m2},
            "Type of the KV cache (default bf16)");
  command.add_option("--page", options.page_size, "Tokens per page of the KV cache")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command
      .add_option("--max-seqlen-q", options.max_seqlen_q,
                  "Query tokens per request in decode: 1, plus drafts")
      ->check(CLI::Range(1, 128))
      ->capture_default_str();
  command.add_flag("--batch-invariant", options.batch_invariant,
                   "A request's result does not depend on the batch, to the bit");
}

void add_plan_options(CLI::App& command, PlanOptions& options) {
  add_deployment_options(command, options);
  add_phases(command, options.phases);
}

void add_plan_arguments(CLI::App& command, PlanArguments& arguments) {
  command.add_option("model", arguments.model, "Path of a config.json, or a preset")->required();
  add_plan_options(command, arguments.options);
  command.get_option("--phases")->each([&arguments](const std::string&) {
    arguments.names_phases = true;
  });
}

ModelPlan make_plan(const PlanArguments& arguments) {
  return plan_model_source(arguments.model, arguments.options);
}

}  // namespace attnjit
