#include "prefill_composition_suite.hpp"

#include <string>
#include <string_view>

#include "attnjit/mask_formula.hpp"
#include "custom_expressions.hpp"

namespace attnjit::check {
namespace {

using Suite = std::vector<PrefillSuiteCase>;

// Small enough for a mask per query head to be drawn on the host.
Lengths short_lengths() {
  return {{129, 129}, {0, 65}, {64, 300}, {1, 127}, {63, 0}, {128, 63}};
}

// Many tiles of keys, of which short windows and chunks skip most.
Lengths long_lengths() {
  return {{200, 1500}, {33, 700}, {0, 5}, {300, 300}};
}

PrefillCase& add_composed(Suite& suite, const std::string& group,
                          const AttentionDescriptor& descriptor, const Lengths& lengths) {
  PrefillCase& added = add_prefill_case(suite, group, descriptor, lengths);
  if (has_mask(descriptor, MaskKind::prefix_lm)) {
    for (const auto& [queries, keys] : lengths) {
      added.prefix_lens.push_back(keys / 3 + 2);
    }
  }
  return added;
}

// Of masks that follow from places and segments.
void add_placed(Suite& suite) {
  for (const std::string_view formula :
       {"causal and document", "sliding_window or prefix_lm", "sliding_window and chunked",
        "causal and (sliding_window or document)", "chunked or sliding_window",
        "document or causal and chunked_causal", "prefix_lm and document or sliding_window"}) {
    const std::string group = "prefill, mask " + std::string(formula);
    for (const AttentionDescriptor& each :
         {ragged_descriptor(12, 4, 128), paged_descriptor(12, 4, 64)}) {
      const AttentionDescriptor descriptor = composed(each, formula);
      add_composed(suite, group, descriptor, mixed_lengths());
      add_composed(suite, group, descriptor, long_lengths());
      PrefillCase& moved = add_composed(suite, group, descriptor, {{65, 300}, {100, 130}});
      moved.query_positions = {200, 3};
      moved.key_positions = {70, 64};
    }
  }
}

// Of masks in memory, which may be shorter than a sequence and hide only in their part of an or.
void add_in_memory(Suite& suite) {
  for (const std::string_view formula :
       {"causal and materialized_bool", "materialized_bits and document or sliding_window",
        "tree or sliding_window", "materialized_additive and causal and document"}) {
    const std::string group = "prefill, mask " + std::string(formula);
    const AttentionDescriptor descriptor = composed(ragged_descriptor(12, 4, 128), formula);
    for (const MaskExtents::Heads heads : {MaskExtents::Heads::one, MaskExtents::Heads::q}) {
      add_composed(suite, group, descriptor, short_lengths()).mask_extents.heads = heads;
    }
    PrefillCase& shorter = add_composed(suite, group, descriptor, short_lengths());
    shorter.mask_shortage = has_mask(descriptor, MaskKind::tree) ? 0 : 76;
    shorter.query_layout = QueryLayout::bshd;
  }
}

void add_custom_masks(Suite& suite) {
  for (const std::string_view expression : custom_mask_expressions) {
    for (AttentionDescriptor descriptor :
         {ragged_descriptor(12, 4, 128), paged_descriptor(6, 2, 256)}) {
      descriptor.mask = MaskKind::custom;
      descriptor.mask_expression = expression;
      add_prefill_case(suite, "prefill, mask custom", descriptor, mixed_lengths());
      PrefillCase& moved =
          add_prefill_case(suite, "prefill, mask custom", descriptor, {{65, 300}, {100, 130}});
      moved.query_positions = {200, 3};
      moved.key_positions = {70, -20};
    }
  }
  AttentionDescriptor joined =
      composed(paged_descriptor(12, 4, 128), "causal and custom or document and sliding_window");
  for (const std::string_view expression : custom_mask_expressions) {
    joined.mask_expression = expression;
    add_prefill_case(suite, "prefill, mask custom, composed", joined, mixed_lengths());
    add_prefill_case(suite, "prefill, mask custom, composed", joined, long_lengths());
  }
  joined.sparsity = Sparsity::block;
  joined.sparsity_block = 48;
  joined.has_sinks = true;
  add_prefill_case(suite, "prefill, mask custom, composed", joined, mixed_lengths());
}

void add_custom_modifiers(Suite& suite) {
  for (const std::string_view expression : custom_score_expressions) {
    for (const MaskKind mask : {MaskKind::none, MaskKind::causal}) {
      AttentionDescriptor descriptor = with_mask(ragged_descriptor(12, 4, 128), mask);
      descriptor.score_modifier = ScoreModifier::custom;
      descriptor.score_expression = expression;
      add_prefill_case(suite, "prefill, modifier custom", descriptor, mixed_lengths());
      PrefillCase& moved =
          add_prefill_case(suite, "prefill, modifier custom", descriptor, {{65, 300}, {100, 130}});
      moved.key_positions = {70, 5};
      moved.softmax_scale = -0.4;
    }
  }
}

void add_biases(Suite& suite) {
  for (const DataType type : {DataType::bf16, DataType::fp16, DataType::fp32}) {
    AttentionDescriptor causal = ragged_descriptor(12, 4, 128);
    causal.score_modifier = ScoreModifier::additive_bias;
    causal.dtype_bias = type;
    AttentionDescriptor additive = with_mask(causal, MaskKind::materialized_additive);
    additive.dtype_mask = DataType::bf16;
    AttentionDescriptor wide = paged_descriptor(4, 2, 256);
    wide.score_modifier = ScoreModifier::additive_bias;
    wide.dtype_bias = type;
    wide.has_sinks = true;
    for (const AttentionDescriptor& descriptor :
         {causal, with_mask(causal, MaskKind::document), additive,
          composed(wide, "causal and document or sliding_window")}) {
      PrefillCase& shared =
          add_prefill_case(suite, "prefill, additive bias", descriptor, short_lengths());
      shared.mask_extents = {false, false, MaskExtents::Heads::q};
      PrefillCase& shorter =
          add_prefill_case(suite, "prefill, additive bias", descriptor, short_lengths());
      shorter.mask_shortage = 76;
      shorter.query_layout = QueryLayout::bhsd;
    }
  }
}

}  // namespace

AttentionDescriptor composed(AttentionDescriptor descriptor, std::string_view formula) {
  descriptor.mask = MaskKind::composed;
  descriptor.mask_formula = formula;
  if (has_mask(descriptor, MaskKind::sliding_window)) {
    descriptor.window_left = 90;
    descriptor.window_right = 3;
  }
  if (has_mask(descriptor, MaskKind::chunked) || has_mask(descriptor, MaskKind::chunked_causal)) {
    descriptor.chunk_size = 100;
  }
  if (has_mask(descriptor, MaskKind::custom)) {
    descriptor.mask_expression = custom_mask_expressions[custom_mask_dilated];
  }
  if (has_mask(descriptor, MaskKind::materialized_additive)) {
    descriptor.dtype_mask = DataType::fp16;
  }
  return descriptor;
}

std::vector<PrefillSuiteCase> prefill_composition_suite() {
  Suite suite;
  add_placed(suite);
  add_in_memory(suite);
  add_custom_masks(suite);
  add_custom_modifiers(suite);
  add_biases(suite);
  return suite;
}

}  // namespace attnjit::check
