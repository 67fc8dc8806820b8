// Knobs onto the model's configs, and which values each knob may take: the one place that says what
// a legal configuration is, for rows of tuning tables and for what `attnjit tune` tries. Private;
// pure, thread-safe.
#pragma once

#include <vector>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/kernel_config.hpp"
#include "attnjit/target_device.hpp"
#include "attnjit/tuning_table.hpp"

namespace attnjit {

// Each sets what of `knobs` concerns its config, and adds what of the result is illegal, or what
// concerns no config of this decode, to `violations`.
void apply_attention_knobs(const TuningKnobs& knobs, const TargetDevice& device,
                           KernelConfig& attention, std::vector<Violation>& violations);
void apply_combine_knobs(const TuningKnobs& knobs, bool batch_invariant, CombineConfig& combine,
                         std::vector<Violation>& violations);
void apply_schedule_knobs(const TuningKnobs& knobs, bool batch_invariant, ScheduleConfig& schedule,
                          std::vector<Violation>& violations);

}  // namespace attnjit
