// The file of a card's tuning table, as `attnjit tune` opens, changes and writes it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "attnjit/target_device.hpp"
#include "attnjit/tuning_table.hpp"
#include "tune_run.hpp"

namespace attnjit {

struct TableFile {
  std::filesystem::path path;
  TuningTable table;
};

// The preset of a GPU as the driver tells it: of the same size, and its name, without spaces, is
// words of the card's. Throws UsageError if there is none.
TargetDevice find_card_preset(const TargetDevice& card);

// The table at `path`, or an empty one for the card if there is none. Throws UsageError for what
// is no file, is another card's, or cannot be written; TuningError for what is no table.
TableFile open_table(const std::filesystem::path& path, const TargetDevice& preset,
                     const std::string& card);

// Whole or not at all; throws std::runtime_error.
void write_table(const TableFile& file);

// The row of the result's descriptor, if its kernel was not among those tried: `kernels` beside the
// model's, or all if empty.
std::optional<TunedRow> row_not_tried(const TuningTable& table, const TuneResult& result,
                                      const std::vector<std::string>& kernels);

}  // namespace attnjit
