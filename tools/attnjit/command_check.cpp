// attnjit check: runs kernels on the GPU and compares them with the fp64 reference: the whole
// suite, one decode step of a model's layers or of a descriptor, or random cases.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "attnjit/shown_text.hpp"
#include "check_report.hpp"
#include "check_run.hpp"
#include "command.hpp"
#include "decode_source.hpp"
#include "fuzz_run.hpp"
#include "gpu_arguments.hpp"
#include "plan_arguments.hpp"
#include "rows.hpp"

namespace attnjit {
namespace {

constexpr int default_batch = 6;
constexpr int default_seqlen_kv = 4096;

struct CheckArguments {
  PlanArguments plan;  // plan.model: a model, a descriptor as JSON, or empty for the suite
  GpuArguments gpu;
  int batch = default_batch;
  int seqlen_kv = default_seqlen_kv;
  CheckSuite suite = CheckSuite::all;
  std::string filter;
  FuzzRange fuzz;
  bool as_json = false;
};

// Options of a decode step of a model's or a descriptor's.
void refuse_step(const CheckArguments& arguments, std::string_view what) {
  refuse_deployment(arguments.plan.options, what);
  refuse_option(arguments.plan.options.phases != PlanOptions{}.phases, "--phases", what);
  refuse_option(arguments.batch != default_batch, "--batch", what);
  refuse_option(arguments.seqlen_kv != default_seqlen_kv, "--seqlen-kv", what);
}

void refuse_contradictions(const CheckArguments& arguments) {
  const FuzzRange none;
  if (arguments.fuzz.count == 0) {
    refuse_option(arguments.fuzz.seed != none.seed, "--seed", "no --fuzz");
    refuse_option(arguments.fuzz.first != none.first, "--first", "no --fuzz");
    if (arguments.plan.model.empty()) {
      refuse_step(arguments, "no model or descriptor");
    }
    return;
  }
  refuse_option(!arguments.plan.model.empty(), "a model or a descriptor", "--fuzz");
  refuse_step(arguments, "--fuzz");
  refuse_option(arguments.suite != CheckSuite::all, "--suite", "--fuzz");
  refuse_option(!arguments.filter.empty(), "--filter", "--fuzz");
}

std::vector<CheckCase> cases_of(const CheckArguments& arguments) {
  if (arguments.plan.model.empty()) {
    return cases_of_suite(arguments.suite);
  }
  refuse_option(arguments.suite != CheckSuite::all, "--suite", "a model or a descriptor");
  const std::vector<AttentionDescriptor> descriptors =
      find_descriptors(arguments.plan, {Operation::decode, Operation::sparse_mla_decode});
  return step_cases(descriptors, arguments.batch, arguments.seqlen_kv);
}

void add_suite_option(CLI::App& command, CheckSuite& suite) {
  const std::vector<CheckSuite> suites = {CheckSuite::decode, CheckSuite::prefill,
                                          CheckSuite::sparse, CheckSuite::contract,
                                          CheckSuite::all};
  std::vector<std::string> names;
  for (const CheckSuite each : suites) {
    names.emplace_back(to_string(each));
  }
  const auto choose = [&suite, suites](const std::string& name) {
    suite = *std::find_if(suites.begin(), suites.end(),
                          [&](CheckSuite each) { return to_string(each) == name; });
  };
  command.add_option_function<std::string>("--suite", choose, "Which suite to run (default all)")
      ->check(CLI::IsMember(names));
}

// Of the contract, those whose id is of the glob; none beside a model or a descriptor.
std::vector<contract::Requirement> requirements_of(const CheckArguments& arguments) {
  const bool has_contract =
      arguments.suite == CheckSuite::contract || arguments.suite == CheckSuite::all;
  return has_contract && arguments.plan.model.empty() ? contract::requirements_of(arguments.filter)
                                                      : std::vector<contract::Requirement>{};
}

CheckReport run_suite(const CheckArguments& arguments) {
  const std::vector<CheckCase> cases = filter_cases(cases_of(arguments), arguments.filter);
  const std::vector<contract::Requirement> requirements = requirements_of(arguments);
  if (cases.empty() && requirements.empty()) {
    throw UsageError(fmt::format(
        "--filter {}: no case holds this text, and no requirement has such an id; fix: run "
        "attnjit check without --filter to see groups and ids",
        shown_text(arguments.filter)));
  }
  CheckReport report;
  if (cases.empty() && !needs_gpu(requirements)) {
    report.requirements = run_requirements(requirements);
    return report;
  }
  AttentionRuntime runtime(provider_options(arguments.gpu));
  report = run_cases(runtime, arguments.gpu.device, cases);
  if (!requirements.empty()) {
    report.requirements = run_requirements(runtime, arguments.gpu.device, requirements);
  }
  return report;
}

CheckReport run_fuzz(const CheckArguments& arguments) {
  const FuzzedCases fuzzed = fuzz_cases(arguments.fuzz);
  AttentionRuntime runtime(provider_options(arguments.gpu));
  CheckReport report = run_cases(runtime, arguments.gpu.device, fuzzed.cases);
  name_commands(report, fuzzed);
  return report;
}

void add_fuzz_options(CLI::App& command, FuzzRange& fuzz) {
  constexpr int most_cases = 1'000'000;
  command
      .add_option("--fuzz", fuzz.count,
                  "Random cases to run, and as many illegal descriptors and calls to see refused")
      ->check(CLI::Range(1, most_cases));
  command.add_option("--seed", fuzz.seed, "What the random cases follow from")
      ->capture_default_str();
  command.add_option("--first", fuzz.first, "Index of the first random case")
      ->capture_default_str();
}

ExitCode run(const CheckArguments& arguments) {
  refuse_contradictions(arguments);
  const CheckReport report = arguments.fuzz.count > 0 ? run_fuzz(arguments) : run_suite(arguments);
  print_report(report, arguments.as_json);
  return has_passed(report) ? ExitCode::succeeded : ExitCode::failed;
}

}  // namespace

void add_check_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("check", "Compare kernels with an fp64 reference on the GPU");
  const auto arguments = std::make_shared<CheckArguments>();
  add_plan_arguments(*command, arguments->plan);
  command->get_option("model")->required(false)->description(
      "Model (config.json or preset) or descriptor (JSON text or file) to check one decode step "
      "of; the whole suites if not given");
  add_gpu_arguments(*command, arguments->gpu);
  command->add_option("--batch", arguments->batch, "Requests of the decode step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--seqlen-kv", arguments->seqlen_kv, "Keys of the longest request")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  add_suite_option(*command, arguments->suite);
  command->add_option(
      "--filter", arguments->filter,
      "Only cases whose name holds this text; of the contract, requirements whose id is of "
      "this glob: R4*");
  add_fuzz_options(*command, arguments->fuzz);
  command->add_flag("--json", arguments->as_json, "Print one JSON document");
  command->callback([&action, arguments] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace attnjit
