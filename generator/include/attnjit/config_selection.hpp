// validate -> select_configs -> KernelConfig: which kernels serve a descriptor on a device, and
// with which tile, stages and warps. Pure functions, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/kernel_config.hpp"
#include "attnjit/target_device.hpp"
#include "attnjit/tuning_table.hpp"

namespace attnjit {

// The kernels an operation launches: attention, combine and schedule of a decode; a prefill and
// what merges its parts; the one kernel of merge_states or append_kv_cache. A decode's by the row
// of the tuning table of this card, if there is one for the descriptor, else by the model. Throws
// DescriptorError if the descriptor is illegal or unsupported, or if no tile fits the device's
// shared memory.
std::vector<KernelConfig> select_configs(const AttentionDescriptor& descriptor,
                                         const TargetDevice& device);

// The same by the model, but for `knobs`. Throws TuningError listing every knob that is illegal,
// DescriptorError as above.
std::vector<KernelConfig> configure_decode(const AttentionDescriptor& descriptor,
                                           const TargetDevice& device, const TuningKnobs& knobs);

// The same for a row of a table; what is illegal is told with the row.
std::vector<KernelConfig> configure_tuned(const AttentionDescriptor& descriptor,
                                          const TargetDevice& device, const TunedRow& row);

// Knobs, and the kernels that they give.
struct ConfigVariant {
  TuningKnobs knobs;
  std::vector<KernelConfig> configs;
};

// Every legal way to serve the attention of a decode: the model's first, no two alike. Combine and
// schedule are the model's.
std::vector<ConfigVariant> legal_configs(const AttentionDescriptor& descriptor,
                                         const TargetDevice& device);

// The same for combine and schedule, about what `knobs` say of the attention kernel: `knobs`
// themselves first.
std::vector<ConfigVariant> legal_schedules(const AttentionDescriptor& descriptor,
                                           const TargetDevice& device, const TuningKnobs& knobs);

// The mask that a kernel is made for.
struct EffectiveMask {
  MaskKind mask = MaskKind::none;
  int window_left = -1;   // keys; -1 = unbounded
  int window_right = -1;  // keys; at least 0 if the mask is a window
};

// What the mask hides of up to max_seqlen_q queries, the last of which stands at the sequence's
// end: with one query token the causal mask hides nothing that the length does not.
EffectiveMask effective_mask(const AttentionDescriptor& descriptor);

// An attention kernel, and what it needs that a descriptor or a device does not have.
struct KernelCandidate {
  std::string kernel;              // the template's name
  std::vector<std::string> unmet;  // conditions in words; empty if it serves the descriptor
};

// All of them in the order in which select_configs tries them: the first without unmet conditions
// is taken. Throws DescriptorError if the descriptor is illegal or unsupported.
std::vector<KernelCandidate> attention_candidates(const AttentionDescriptor& descriptor,
                                                  const TargetDevice& device);

}  // namespace attnjit
