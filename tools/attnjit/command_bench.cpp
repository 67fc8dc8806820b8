// attnjit bench: times decode and prefill calls on the GPU and sets them against the device's
// roofline.
#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "attnjit/attention_runtime.hpp"
#include "attnjit/descriptor_json.hpp"
#include "attnjit/target_device_query.hpp"
#include "check_run.hpp"
#include "command.hpp"
#include "decode_timing.hpp"
#include "gpu_arguments.hpp"
#include "plan_arguments.hpp"
#include "prefill_timing.hpp"
#include "standard_streams.hpp"
#include "text_table.hpp"
#include "timed_calls.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

struct BenchArguments {
  PlanArguments plan;  // plan.model: a model, or a descriptor as JSON
  GpuArguments gpu;
  BatchSizes sizes;
  int repetitions = 30;
  bool as_json = false;
};

struct BenchRow {
  std::string name;
  AttentionDescriptor descriptor;
  int batch = 0;
  int seqlen_q = 0;
  int seqlen_kv = 0;
  check::CallTiming timing;
  double roofline_percent = 0;
};

void time_decode(AttentionRuntime& runtime, const BenchArguments& arguments, BenchRow& row) {
  const check::DecodeCase decode_case = make_decode_case(row.descriptor, row.batch, row.seqlen_kv);
  row.seqlen_q = decode_case.seqlen_q;
  row.name = describe(decode_case);
  row.timing =
      check::time_decode(runtime, decode_case, arguments.gpu.device, arguments.repetitions);
}

void time_prefill(AttentionRuntime& runtime, const BenchArguments& arguments, BenchRow& row) {
  const check::PrefillCase prefill_case =
      make_prefill_case(row.descriptor, row.batch, row.seqlen_kv, arguments.sizes.seqlen_q);
  row.seqlen_q = prefill_case.q_lens.front();
  row.name = describe(prefill_case);
  row.timing =
      check::time_prefill(runtime, prefill_case, arguments.gpu.device, arguments.repetitions);
}

std::vector<BenchRow> measure(const BenchArguments& arguments) {
  // Before the driver is asked: what is wrong with the arguments is wrong without a GPU too.
  const std::vector<AttentionDescriptor> descriptors =
      find_timed_calls(arguments.plan, arguments.sizes);
  AttentionRuntime runtime(provider_options(arguments.gpu));
  const check::DevicePeak peak = check::query_device_peak(arguments.gpu.device);
  std::vector<BenchRow> rows;
  for (const AttentionDescriptor& descriptor : descriptors) {
    for (const int batch : arguments.sizes.batches) {
      for (const int seqlen_kv : arguments.sizes.seqlens_kv) {
        BenchRow row;
        row.descriptor = descriptor;
        row.batch = batch;
        row.seqlen_kv = seqlen_kv;
        if (descriptor.operation == Operation::decode) {
          time_decode(runtime, arguments, row);
        } else {
          time_prefill(runtime, arguments, row);
        }
        row.roofline_percent = 100 * check::roofline_microseconds(row.timing.work, peak) /
                               row.timing.median_microseconds;
        rows.push_back(row);
      }
    }
  }
  return rows;
}

json to_json(const BenchRow& row) {
  return {{"case", row.name},
          {"descriptor", json::parse(to_json(row.descriptor))},
          {"batch", row.batch},
          {"seqlen_q", row.seqlen_q},
          {"seqlen_kv", row.seqlen_kv},
          {"median_us", row.timing.median_microseconds},
          {"min_us", row.timing.least_microseconds},
          {"tflops", row.timing.teraflops()},
          {"gbps", row.timing.gigabytes_per_second()},
          {"roofline_percent", row.roofline_percent}};
}

void print_rows(const std::vector<BenchRow>& rows) {
  constexpr std::array<TableColumn, 6> columns = {{{"case"},
                                                   {"us", Alignment::right},
                                                   {"min us", Alignment::right},
                                                   {"TFLOP/s", Alignment::right},
                                                   {"GB/s", Alignment::right},
                                                   {"% of roofline", Alignment::right}}};
  std::vector<std::vector<std::string>> cells;
  for (const BenchRow& row : rows) {
    cells.push_back({row.name, fmt::format("{:.1f}", row.timing.median_microseconds),
                     fmt::format("{:.1f}", row.timing.least_microseconds),
                     fmt::format("{:.1f}", row.timing.teraflops()),
                     fmt::format("{:.0f}", row.timing.gigabytes_per_second()),
                     fmt::format("{:.1f}", row.roofline_percent)});
  }
  print_result("{}", format_table(columns, cells));
}

ExitCode run(const BenchArguments& arguments) {
  const std::vector<BenchRow> rows = measure(arguments);
  const std::string card = query_target_device(arguments.gpu.device).name;
  if (arguments.as_json) {
    json list = json::array();
    for (const BenchRow& row : rows) {
      list.push_back(to_json(row));
    }
    const check::DevicePeak peak = check::query_device_peak(arguments.gpu.device);
    const json peak_json = {{"tflops", peak.flops_per_second * 1e-12},
                            {"gbps", peak.bytes_per_second * 1e-9}};
    print_result(
        "{}\n",
        json{{"schema", 1}, {"card", card}, {"peak", peak_json}, {"rows", std::move(list)}}.dump());
  } else {
    print_result("{}\n", card);
    print_rows(rows);
  }
  return ExitCode::succeeded;
}

}  // namespace

void add_bench_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("bench", "Time decode or prefill on the GPU");
  const auto arguments = std::make_shared<BenchArguments>();
  add_plan_arguments(*command, arguments->plan);
  command->get_option("model")->description(
      "Model (config.json or preset) or descriptor (JSON text or file) to time");
  add_gpu_arguments(*command, arguments->gpu);
  add_batch_sizes(*command, arguments->sizes);
  command->add_option("--repetitions", arguments->repetitions, "Replays; the median is printed")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_flag("--json", arguments->as_json, "Print one JSON document");
  command->callback([&action, arguments] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace attnjit
