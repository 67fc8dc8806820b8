// attnjit roof: what a call must do at least, what bounds it on a card, and how long that takes.
// Needs no GPU.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_json.hpp"
#include "card_rates.hpp"
#include "command.hpp"
#include "json_document.hpp"
#include "plan_arguments.hpp"
#include "standard_streams.hpp"
#include "target_arguments.hpp"
#include "text_table.hpp"
#include "timed_calls.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

struct RoofCommand {
  PlanArguments plan;  // plan.model: a model, or a descriptor as JSON
  TargetArguments target;
  BatchSizes sizes;
  bool as_json = false;
};

// The least times of a call, each as if there were no other bound.
struct Floor {
  double memory_us = 0;
  double tensor_us = 0;
  double launch_us = 0;

  double us() const { return std::max({memory_us, tensor_us, launch_us}); }
  std::string_view bound() const {
    return us() == launch_us ? "launch" : us() == memory_us ? "memory" : "tensor cores";
  }
};

struct RoofRow {
  AttentionDescriptor descriptor;
  int batch = 0;
  int seqlen_kv = 0;
  CountedCall call;
  check::CardRates rates;
  int num_kernels = 0;
  Floor floor;  // by what was measured, else by the datasheet

  double intensity() const { return call.work.flops / call.work.bytes(); }
};

// Kernels of a run: the schedule of a decode belongs to its plan, and a prefill merges only where
// it splits keys.
int count_kernels(const AttentionDescriptor& descriptor, const TargetDevice& target) {
  if (descriptor.operation != Operation::decode) {
    return 1;
  }
  const std::vector<KernelConfig> configs = select_configs(descriptor, target);
  return static_cast<int>(std::count_if(
      configs.begin(), configs.end(),
      [](const KernelConfig& config) { return role_of(config) != KernelRole::schedule; }));
}

Floor find_floor(const RoofRow& row) {
  const check::DevicePeak& peak = row.rates.measured.value_or(row.rates.datasheet);
  return {.memory_us = 1e6 * row.call.work.bytes() / peak.bytes_per_second,
          .tensor_us = 1e6 * row.call.work.flops / peak.flops_per_second,
          .launch_us = check::launch_microseconds(row.num_kernels)};
}

check::CardRates require_rates(const TargetDevice& target) {
  const auto rates = check::find_card_rates(target);
  if (!rates) {
    throw UsageError(fmt::format(
        "arch = {} ({}, {} multiprocessors): its rates are not known; fix: name a card with --arch",
        target.name, target.arch, target.num_sms));
  }
  return *rates;
}

std::vector<RoofRow> count_rows(const RoofCommand& command) {
  std::vector<RoofRow> rows;
  const std::vector<TargetDevice> targets = find_targets(command.target);
  for (const AttentionDescriptor& descriptor : find_timed_calls(command.plan, command.sizes)) {
    for (const TargetDevice& target : targets) {
      const check::CardRates rates = require_rates(target);
      const int num_kernels = count_kernels(descriptor, target);
      for (const int batch : command.sizes.batches) {
        for (const int seqlen_kv : command.sizes.seqlens_kv) {
          RoofRow row;
          row.descriptor = descriptor;
          row.batch = batch;
          row.seqlen_kv = seqlen_kv;
          row.call = count_call(descriptor, batch, seqlen_kv, command.sizes.seqlen_q);
          row.rates = rates;
          row.num_kernels = num_kernels;
          row.floor = find_floor(row);
          rows.push_back(std::move(row));
        }
      }
    }
  }
  return rows;
}

std::string list_tensors(const check::CallWork& work) {
  std::string text;
  for (const check::TensorBytes& tensor : work.tensors) {
    text += fmt::format("{}{} {:.3f}", text.empty() ? "" : ", ", tensor.name, tensor.bytes / 1e6);
  }
  return text;
}

void print_text(const std::vector<RoofRow>& rows) {
  constexpr std::array<TableColumn, 9> columns = {{{"case"},
                                                   {"card"},
                                                   {"GFLOP", Alignment::right},
                                                   {"MB", Alignment::right},
                                                   {"FLOP/B", Alignment::right},
                                                   {"bound"},
                                                   {"floor us", Alignment::right},
                                                   {"rates"},
                                                   {"MB by tensor"}}};
  std::vector<std::vector<std::string>> cells;
  for (const RoofRow& row : rows) {
    cells.push_back(
        {row.call.name, row.rates.card, fmt::format("{:.3f}", row.call.work.flops / 1e9),
         fmt::format("{:.3f}", row.call.work.bytes() / 1e6), fmt::format("{:.1f}", row.intensity()),
         std::string(row.floor.bound()), fmt::format("{:.1f}", row.floor.us()),
         row.rates.measured ? "measured" : "datasheet", list_tensors(row.call.work)});
  }
  print_result("{}", format_table(columns, cells));
}

Json peak_json(const check::DevicePeak& peak) {
  return {{"tflops", peak.flops_per_second / 1e12}, {"gbps", peak.bytes_per_second / 1e9}};
}

Json to_document(const RoofRow& row) {
  Json tensors = Json::object();
  for (const check::TensorBytes& tensor : row.call.work.tensors) {
    tensors[tensor.name] = tensor.bytes;
  }
  Json rates = {{"datasheet", peak_json(row.rates.datasheet)}};
  if (row.rates.measured) {
    rates["measured"] = peak_json(*row.rates.measured);
  }
  return {{"case", row.call.name},
          {"descriptor", Json::parse(to_json(row.descriptor))},
          {"batch", row.batch},
          {"seqlen_q", row.call.seqlen_q},
          {"seqlen_kv", row.seqlen_kv},
          {"card", row.rates.card},
          {"rates", rates},
          {"flops", row.call.work.flops},
          {"bytes", row.call.work.bytes()},
          {"tensors", tensors},
          {"flops_per_byte", row.intensity()},
          {"kernels", row.num_kernels},
          {"memory_us", row.floor.memory_us},
          {"tensor_us", row.floor.tensor_us},
          {"launch_us", row.floor.launch_us},
          {"bound", row.floor.bound()},
          {"floor_us", row.floor.us()}};
}

ExitCode run(const RoofCommand& command) {
  const std::vector<RoofRow> rows = count_rows(command);
  if (!command.as_json) {
    print_text(rows);
    return ExitCode::succeeded;
  }
  Json list = Json::array();
  for (const RoofRow& row : rows) {
    list.push_back(to_document(row));
  }
  print_result("{}\n", to_line({{"schema", 1}, {"command", "roof"}, {"rows", list}}));
  return ExitCode::succeeded;
}

}  // namespace

void add_roof_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("roof", "Count a call's FLOPs and bytes, its bound and its least time");
  const auto roof = std::make_shared<RoofCommand>();
  add_plan_arguments(*command, roof->plan);
  command->get_option("model")->description(
      "Model (config.json or preset) or descriptor (JSON text or file)");
  add_target_arguments(*command, roof->target);
  add_batch_sizes(*command, roof->sizes);
  command->add_flag("--json", roof->as_json, "Print one JSON document");
  command->callback([&action, roof] { action = [roof] { return run(*roof); }; });
}

}  // namespace attnjit
