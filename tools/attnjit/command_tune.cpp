// attnjit tune: tries every legal configuration of a decode on this machine's GPU, and writes what
// beats the model into the tuning table of the card, which the next build takes in.
#include <CLI/CLI.hpp>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/shown_text.hpp"
#include "attnjit/target_device_query.hpp"
#include "command.hpp"
#include "decode_source.hpp"
#include "gpu_arguments.hpp"
#include "plan_arguments.hpp"
#include "standard_streams.hpp"
#include "tune_report.hpp"
#include "tune_run.hpp"
#include "tune_table.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;

struct TuneArguments {
  PlanArguments plan;  // plan.model: a model, or a descriptor as JSON
  GpuArguments gpu;
  TuneRequest request;
  std::string table;  // empty: tools/tuned/<card>.json
  bool is_dry_run = false;
  bool as_json = false;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm date = {};
  gmtime_r(&now, &date);
  return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

// What to run again for this row: the points and the rest by their options, of a model's decode
// the descriptor's key stands beside it.
std::string command_of(const TuneArguments& arguments) {
  const PlanOptions& options = arguments.plan.options;
  const PlanOptions none;
  std::string command = fmt::format("attnjit tune '{}'", arguments.plan.model);
  const auto add = [&](bool is_given, std::string_view option, const auto& value) {
    if (is_given) {
      command += fmt::format(" {} {}", option, value);
    }
  };
  add(options.tensor_parallel != none.tensor_parallel, "--tp", options.tensor_parallel);
  add(options.dtype != none.dtype, "--dtype", to_string(options.dtype));
  add(options.dtype_kv != none.dtype_kv, "--kv-dtype", to_string(options.dtype_kv));
  add(options.page_size != none.page_size, "--page", options.page_size);
  add(options.max_seqlen_q != none.max_seqlen_q, "--max-seqlen-q", options.max_seqlen_q);
  command += options.batch_invariant ? " --batch-invariant" : "";
  add(true, "--batch", fmt::format("{}", fmt::join(arguments.request.batches, ",")));
  add(true, "--seqlen-kv", fmt::format("{}", fmt::join(arguments.request.seqlens_kv, ",")));
  add(true, "--repetitions", arguments.request.repetitions);
  add(true, "--margin", arguments.request.margin_percent);
  add(!arguments.request.kernels.empty(), "--kernel",
      fmt::format("{}", fmt::join(arguments.request.kernels, ",")));
  return command;
}

fs::path table_path(const TuneArguments& arguments, const TargetDevice& preset) {
  return arguments.table.empty() ? fs::path("tools/tuned") / (preset.name + ".json")
                                 : fs::path(arguments.table);
}

// Before the work: a table that cannot be written would be told after it.
void check_table_folder(const TuneArguments& arguments) {
  const fs::path folder =
      arguments.table.empty() ? "tools/tuned" : fs::absolute(arguments.table).parent_path();
  if (!arguments.is_dry_run && !fs::is_directory(folder)) {
    throw UsageError(
        fmt::format("{} is no folder here; fix: run from the top of the source tree, "
                    "name the table's file with --table, or tune with --dry-run",
                    shown_text(folder.string())));
  }
}

// What a result changes in the table; written at once, so that a later failure loses nothing.
void record(const TuneArguments& arguments, const TuneResult& result, TableFile& file) {
  if (result.is_won) {
    replace_row(file.table, row_of(result, today(), command_of(arguments)));
  } else if (const auto kept = row_not_tried(file.table, result, arguments.request.kernels)) {
    print_message("{}: its row stays, {} was not among --kernel\n", describe(kept->key),
                  to_string(*kept->knobs.kernel));
  } else {
    remove_row(file.table, tuning_key(result.descriptor));
  }
  write_table(file);
}

ExitCode run(const TuneArguments& arguments) {
  const std::vector<AttentionDescriptor> descriptors =
      find_descriptors(arguments.plan, {Operation::decode});
  check_table_folder(arguments);
  AttentionRuntime runtime(provider_options(arguments.gpu));
  const TargetDevice card = query_target_device(arguments.request.device);
  std::optional<TableFile> file;
  if (!arguments.is_dry_run) {
    const TargetDevice preset = find_card_preset(card);
    file = open_table(table_path(arguments, preset), preset, card.name);
  }
  std::vector<TuneResult> results;
  for (const AttentionDescriptor& descriptor : descriptors) {
    results.push_back(tune(runtime, descriptor, arguments.request));
    if (!arguments.as_json) {
      print_result("{}\n", format_tuned(results.back()));
    }
    if (file) {
      record(arguments, results.back(), *file);
    }
  }
  if (file) {
    print_message("{}: {} rows\n", file->path.string(), file->table.rows.size());
  }
  if (arguments.as_json) {
    nlohmann::ordered_json tuned = nlohmann::ordered_json::array();
    for (const TuneResult& result : results) {
      tuned.push_back(tuned_to_document(result));
    }
    const nlohmann::ordered_json document = {
        {"schema", 1}, {"command", "tune"}, {"card", card.name}, {"tuned", tuned}};
    print_result("{}\n", document.dump());
  }
  return ExitCode::succeeded;
}

void add_points(CLI::App& command, TuneRequest& request) {
  command.add_option("--batch", request.batches, "Requests, one or several numbers")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command.add_option("--seqlen-kv", request.seqlens_kv, "Keys per request, one or several numbers")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command.add_option("--repetitions", request.repetitions, "Replays of the last round")
      ->check(CLI::Range(5, 100000))
      ->capture_default_str();
  command.add_option("--margin", request.margin_percent, "Per cent to gain on the model for a row")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command
      .add_option("--kernel", request.kernels,
                  "Attention kernels to try beside the model's (default: all that serve it)")
      ->delimiter(',')
      ->check(CLI::IsMember({"swapped_decode_sm90", "seesaw_decode_sm90", "paged_decode_sm80"}));
}

}  // namespace

void add_tune_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("tune", "Find what is faster than the model's configuration, on the GPU");
  const auto arguments = std::make_shared<TuneArguments>();
  add_plan_arguments(*command, arguments->plan);
  command->get_option("model")->description(
      "Model (config.json or preset) or descriptor (JSON text or file) to tune");
  add_gpu_arguments(*command, arguments->gpu);
  add_points(*command, arguments->request);
  command->add_option("--table", arguments->table,
                      "File to write rows into (default tools/tuned/<card>.json)");
  command->add_flag("--dry-run", arguments->is_dry_run, "Write nothing");
  command->add_flag("--json", arguments->as_json, "Print one JSON document");
  command->callback([&action, arguments] {
    arguments->request.device = arguments->gpu.device;
    action = [arguments] { return run(*arguments); };
  });
}

}  // namespace attnjit
