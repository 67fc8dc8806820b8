#include "tune_report.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attnjit/descriptor_json.hpp"
#include "text_table.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

std::string format_times(const std::vector<double>& microseconds) {
  return fmt::format("{:.1f}", fmt::join(microseconds, " "));
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// The fastest first, those that failed last.
std::vector<TriedVariant> sorted(std::vector<TriedVariant> tried) {
  const auto time_of = [](const TriedVariant& each) {
    return each.failure.empty() ? mean_of(each.microseconds) : 1e30;
  };
  std::stable_sort(tried.begin(), tried.end(),
                   [&](const TriedVariant& left, const TriedVariant& right) {
                     return time_of(left) < time_of(right);
                   });
  return tried;
}

std::string verdict(const TuneResult& result) {
  const std::string measured =
      fmt::format("{} gains {:.1f} % on the model, which differs from itself by {:.1f} %",
                  describe(result.best), result.gain_percent, result.noise_percent);
  return result.is_won ? measured + ": won" : measured + ": not won";
}

}  // namespace

std::string format_tuned(const TuneResult& result) {
  constexpr std::array<TableColumn, 4> columns = {
      {{"knobs"}, {"kernel"}, {"mean us", Alignment::right}, {"us at each point"}}};
  std::vector<std::vector<std::string>> rows;
  for (const TriedVariant& each : sorted(result.tried)) {
    const bool is_right = each.failure.empty();
    rows.push_back({describe(each.variant.knobs), describe(each.variant.configs.front()),
                    is_right ? fmt::format("{:.1f}", mean_of(each.microseconds)) : "-",
                    is_right ? format_times(each.microseconds) : first_line(each.failure)});
  }
  return fmt::format("{}\npoints: {}\n{}last round, in turn:\n  model  {}\n  best   {}\n{}\n",
                     describe(tuning_key(result.descriptor)), fmt::join(result.points, ", "),
                     format_table(columns, rows), format_times(result.model_us),
                     format_times(result.best_us), verdict(result));
}

Json tuned_to_document(const TuneResult& result) {
  Json tried = Json::array();
  for (const TriedVariant& each : sorted(result.tried)) {
    Json configs = Json::array();
    for (const KernelConfig& config : each.variant.configs) {
      configs.push_back(Json::parse(to_json(config)));
    }
    tried.push_back({{"knobs", describe(each.variant.knobs)},
                     {"configs", configs},
                     {"failure", each.failure},
                     {"us", each.microseconds}});
  }
  return {{"descriptor", Json::parse(to_json(result.descriptor))},
          {"key", describe(tuning_key(result.descriptor))},
          {"points", result.points},
          {"tried", tried},
          {"model_us", result.model_us},
          {"best_us", result.best_us},
          {"best", describe(result.best)},
          {"gain_percent", result.gain_percent},
          {"noise_percent", result.noise_percent},
          {"won", result.is_won}};
}

TunedRow row_of(const TuneResult& result, const std::string& date, const std::string& command) {
  return {.key = tuning_key(result.descriptor),
          .knobs = result.best,
          .date = date,
          .command = command,
          .points = result.points,
          .model_us = result.model_us,
          .tuned_us = result.best_us};
}

}  // namespace attnjit
