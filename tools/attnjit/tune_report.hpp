// What `attnjit tune` prints of its results, as a table or as JSON, and the rows it writes. Pure;
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tune_run.hpp"

namespace attnjit {

// A line per configuration that was tried, fastest first; then how the best did against the model
// in the last round.
std::string format_tuned(const TuneResult& result);

nlohmann::ordered_json tuned_to_document(const TuneResult& result);

// The row of a result that was won.
TunedRow row_of(const TuneResult& result, const std::string& date, const std::string& command);

}  // namespace attnjit
