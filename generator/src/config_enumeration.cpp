// What `attnjit tune` tries: values of each knob that may be worth it, of those that are legal.
#include <algorithm>

#include "attnjit/config_selection.hpp"
#include "enum_names.hpp"

namespace attnjit {
namespace {

using Knob = std::optional<int> TuningKnobs::*;
using Bases = std::vector<TuningKnobs>;

// Each of `bases` as it is, and with `knob` at each of `values`.
Bases vary(const Bases& bases, Knob knob, const std::vector<int>& values) {
  Bases variants = bases;
  for (const TuningKnobs& base : bases) {
    for (const int value : values) {
      variants.push_back(base);
      variants.back().*knob = value;
    }
  }
  return variants;
}

// Those that are legal, without what gives the same kernels as one before.
std::vector<ConfigVariant> legal_of(const AttentionDescriptor& descriptor,
                                    const TargetDevice& device, const Bases& all) {
  std::vector<ConfigVariant> variants;
  for (const TuningKnobs& knobs : all) {
    try {
      ConfigVariant variant = {knobs, configure_decode(descriptor, device, knobs)};
      if (std::none_of(variants.begin(), variants.end(), [&](const ConfigVariant& other) {
            return other.configs == variant.configs;
          })) {
        variants.push_back(std::move(variant));
      }
    } catch (const TuningError&) {
      continue;
    }
  }
  return variants;
}

Bases attention_variants(AttentionKernel kernel, const AttentionDescriptor& descriptor) {
  TuningKnobs base;
  base.kernel = kernel;
  Bases bases = {base};
  if (kernel == AttentionKernel::swapped_decode_sm90) {
    constexpr int columns = 64;  // of a box
    std::vector<int> rings;
    for (int boxes = descriptor.head_dim_qk / columns; boxes < 2 * descriptor.head_dim_qk / columns;
         ++boxes) {
      rings.push_back(boxes);
    }
    bases = vary(bases, &TuningKnobs::ring_boxes, rings);
  } else if (kernel == AttentionKernel::paged_decode_sm80) {
    // More rows than there are would only be padded.
    std::vector<int> row_tiles = {16};
    for (const int rows : {32, 64}) {
      if (descriptor.max_seqlen_q * descriptor.q_per_kv() > row_tiles.back()) {
        row_tiles.push_back(rows);
      }
    }
    bases = vary(bases, &TuningKnobs::block_m, row_tiles);
    bases = vary(bases, &TuningKnobs::num_warps, {4, 8});
    bases = vary(bases, &TuningKnobs::block_n, {32, 64});
    bases = vary(bases, &TuningKnobs::num_stages, {2, 3, 4});
  }
  return bases;
}

}  // namespace

std::vector<ConfigVariant> legal_configs(const AttentionDescriptor& descriptor,
                                         const TargetDevice& device) {
  Bases all = {TuningKnobs{}};
  for (const KernelCandidate& candidate : attention_candidates(descriptor, device)) {
    if (candidate.unmet.empty()) {
      const Bases more = attention_variants(
          parse_enumerator<AttentionKernel>(candidate.kernel).value(), descriptor);
      all.insert(all.end(), more.begin(), more.end());
    }
  }
  return legal_of(descriptor, device, all);
}

std::vector<ConfigVariant> legal_schedules(const AttentionDescriptor& descriptor,
                                           const TargetDevice& device, const TuningKnobs& knobs) {
  const auto configs = configure_decode(descriptor, device, knobs);
  const auto& schedule = std::get<ScheduleConfig>(configs.back());
  Bases all = vary({knobs}, &TuningKnobs::combine_warps, {8, 16});
  if (descriptor.batch_invariant) {
    const int blocks = schedule.chunk_blocks;
    all = vary(all, &TuningKnobs::chunk_blocks, {blocks / 2, blocks * 2, blocks * 4});
    all = vary(all, &TuningKnobs::segment_pieces, {4, 8, 16});
  } else {
    const int units = schedule.piece_units;
    all = vary(all, &TuningKnobs::piece_units, {units / 2, units * 2});
    all = vary(all, &TuningKnobs::block_percent, {60, 80, 100});
  }
  return legal_of(descriptor, device, all);
}

}  // namespace attnjit
