// What attnjit doctor looks at on this machine: NVRTC, driver, GPUs, cache, templates,
// tuning tables. Each finding
// says what there is, or what is wrong and what to do. Reads only; thread-safe.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/kernel_provider.hpp"
#include "attnjit/tuning_table.hpp"

namespace attnjit {

enum class Verdict {
  good,
  note,     // nothing is wrong, but something does not work here
  problem,  // to be put right
};
std::string_view to_string(Verdict);

struct Finding {
  std::string subject;  // "nvrtc", "driver", "gpu 0", "cache", "layer", "templates", …
  Verdict verdict = Verdict::good;
  std::string text;
};

// What there is of tables of tools/tuned: one that cannot be read refuses the decodes of its card.
Finding examine_tuning_tables(std::span<const TuningTable> tables);

// The findings in a fixed order. Throws nothing for what is wrong with the machine.
std::vector<Finding> examine_machine(const KernelProviderOptions& options);

}  // namespace attnjit
