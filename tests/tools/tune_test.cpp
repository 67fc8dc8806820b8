// attnjit tune without a GPU: what it says there, what it prints of results, when a gain counts.
#include <string>

#include <nlohmann/json.hpp>

#include "../cache/scratch_directory.hpp"
#include "attnjit/descriptor_json.hpp"
#include "catch.hpp"
#include "command.hpp"
#include "command_line.hpp"
#include "decode_suite.hpp"
#include "tune_report.hpp"
#include "tune_run.hpp"
#include "tune_table.hpp"

namespace attnjit {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TuneResult example_result() {
  TuneResult result;
  result.descriptor = check::mla_descriptor(16, 1);
  result.points = {"b1 s_k1024", "b16 s_k1024"};
  const TargetDevice device = find_target_device("h200").value();
  for (ConfigVariant& variant : legal_schedules(result.descriptor, device, {})) {
    result.tried.push_back({std::move(variant), "", {10.0, 40.0}});
  }
  result.tried[0].microseconds = {20, 45};
  result.tried[1].failure = "an output is off by 3.00 times its tolerance";
  result.tried[1].microseconds.clear();
  result.best = result.tried[2].variant.knobs;
  result.model_us = {20, 45};
  result.best_us = {10, 40};
  result.gain_percent = 50;
  result.noise_percent = 0.5;
  result.is_won = true;
  return result;
}

TEST_CASE("a gain counts if it reaches the margin and is more than twice the noise") {
  CHECK(is_gain(2.0, 0.5, 2));
  CHECK_FALSE(is_gain(1.9, 0.5, 2));
  CHECK_FALSE(is_gain(3.0, 1.5, 2));
  CHECK(is_gain(3.1, 1.5, 2));
  CHECK_FALSE(is_gain(0.0, 0.0, 0));
}

TEST_CASE("the mean over points is the geometric one") {
  CHECK(mean_of({10, 40}) == Approx(20));
  CHECK(mean_of({7}) == Approx(7));
}

TEST_CASE("the table has the fastest first, what failed last, and says who won") {
  const TuneResult result = example_result();
  const std::string text = format_tuned(result);
  CHECK(holds(text,
              "bf16 576/512 rows 16 page 64 prefix_of_k none\npoints: b1 s_k1024, b16 s_k1024"));
  CHECK(text.find("20.0  10.0 40.0") < text.find("the model's"));
  CHECK(text.find("the model's") < text.find("an output is off by 3.00 times"));
  CHECK(holds(text, describe(result.best) + " gains 50.0 % on the model, which differs from itself "
                                            "by 0.5 %: won\n"));
  const auto document = tuned_to_document(result);
  CHECK(document.at("won") == true);
  CHECK(document.at("tried").size() == result.tried.size());
  CHECK(document.at("tried").back().at("failure") == result.tried[1].failure);
}

TEST_CASE("a row of a result reads back from a table") {
  const TuneResult result = example_result();
  TuningTable table = {.device = "h200", .card = "NVIDIA H200", .rows = {}, .problem = ""};
  replace_row(table, row_of(result, "2026-11-30", "attnjit tune 'x'"));
  CHECK(parse_tuning_table("table", to_json(table)).rows == table.rows);
  CHECK(table.rows.front().knobs == result.best);
}

TargetDevice card_of(const char* preset, const std::string& name) {
  TargetDevice card = find_target_device(preset).value();
  card.name = name;
  return card;
}

TEST_CASE("a card is known by whole words of its name, with or without spaces") {
  CHECK(find_card_preset(card_of("h200", "NVIDIA H200")).name == "h200");
  CHECK(find_card_preset(card_of("rtx4090", "NVIDIA GeForce RTX 4090")).name == "rtx4090");
  CHECK_THROWS_AS(find_card_preset(card_of("h200", "NVIDIA GH200 480GB")), UsageError);
}

TEST_CASE("a table is opened before the work: no file, damaged and another card's are refused") {
  const test::ScratchDirectory scratch;
  const TargetDevice h200 = find_target_device("h200").value();
  const auto path = scratch.path() / "table.json";
  const auto open = [&] { return open_table(path, h200, "NVIDIA H200"); };
  TableFile file = open();
  CHECK(file.table.rows.empty());
  replace_row(file.table, row_of(example_result(), "2026-11-30", "attnjit tune 'x'"));
  write_table(file);
  CHECK(open().table.rows == file.table.rows);
  CHECK_THROWS_AS(open_table(path, h200, "NVIDIA H200 NVL"), UsageError);
  CHECK_THROWS_AS(open_table(scratch.path(), h200, "NVIDIA H200"), UsageError);
  CHECK_THROWS(open_table(scratch.path() / "none" / "table.json", h200, "NVIDIA H200"));
  test::write_text(path, "{broken");
  CHECK_THROWS_AS(open(), TuningError);
}

TEST_CASE("a row whose kernel was not tried stays") {
  const TuneResult result = example_result();
  TuningTable table = {.device = "h200", .card = "NVIDIA H200", .rows = {}, .problem = ""};
  replace_row(table, row_of(result, "2026-11-30", "attnjit tune 'x'"));
  CHECK_FALSE(row_not_tried(table, result, {"seesaw_decode_sm90"}));  // the model's was tried
  table.rows.front().knobs.kernel = AttentionKernel::seesaw_decode_sm90;
  CHECK(row_not_tried(table, result, {"swapped_decode_sm90"}) == table.rows.front());
  CHECK_FALSE(row_not_tried(table, result, {"seesaw_decode_sm90"}));
  CHECK_FALSE(row_not_tried(table, result, {}));
}

TEST_CASE("tune says what is wrong with its arguments before it asks for a GPU") {
  const std::string descriptor = "'" + to_json(check::mla_descriptor(16, 1)) + "'";
  CHECK(run_attnjit("tune " + descriptor + " --tp 8 --dry-run").exit_code == 2);
  CHECK(run_attnjit("tune " + descriptor + " --margin -1").exit_code == 2);
  CHECK(run_attnjit("tune " + descriptor + " --kernel fastest").exit_code == 2);
  CHECK(run_attnjit("tune '{\"head_dim_qk\": 1}' --dry-run").exit_code == 3);
  const CommandOutput no_folder = run_attnjit("tune " + descriptor + " --table no/such/table.json");
  CHECK(no_folder.exit_code == 2);
  CHECK(holds(no_folder.err, "is no folder here; fix: run from the top of the source tree"));
}

TEST_CASE("tune fails without a driver as bench does") {
  const std::string descriptor = "'" + to_json(check::mla_descriptor(16, 1)) + "'";
  const CommandOutput tuned = run_attnjit("tune " + descriptor + " --dry-run --device 99");
  const CommandOutput timed = run_attnjit("bench " + descriptor + " --device 99");
  CHECK(tuned.exit_code == timed.exit_code);
  CHECK(tuned.exit_code != 0);
  CHECK(tuned.out.empty());
}

}  // namespace
}  // namespace attnjit
