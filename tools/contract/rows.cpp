#include "rows.hpp"

#include <iterator>
#include <utility>

namespace attnjit::contract {

std::vector<Requirement> all_requirements() {
  std::vector<Requirement> all;
  for (const auto part : {operation_rows, decode_rows, prefill_rows, memory_rows, error_rows,
                          flare_rows, layout_reading_rows, numeric_reading_rows, mask_reading_rows,
                          bit_trap_rows, shape_trap_rows}) {
    std::vector<Requirement> rows = part();
    std::move(rows.begin(), rows.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<Requirement> requirements_of(std::string_view pattern) {
  std::vector<Requirement> chosen = all_requirements();
  std::erase_if(chosen, [&](const Requirement& requirement) {
    return !pattern.empty() && !matches_glob(pattern, requirement.id);
  });
  return chosen;
}

}  // namespace attnjit::contract
