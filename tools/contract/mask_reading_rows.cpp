// §4.14: every kind of mask, score modifier and sink.
#include <string_view>

#include "attnjit/descriptor_validation.hpp"
#include "custom_expressions.hpp"
#include "host_case.hpp"
#include "prefill_composition_suite.hpp"
#include "problems.hpp"
#include "reference_case.hpp"
#include "rows.hpp"

namespace attnjit::contract {
namespace {

using check::PrefillCase;

// Small enough for a mask per query head to be drawn on the host.
const check::Lengths short_lengths = {{129, 129}, {0, 65}, {64, 300}, {1, 127}, {63, 0}};

// Queries in the middle of the keys, before all of them, far behind them.
PrefillCase at_positions(const AttentionDescriptor& descriptor) {
  PrefillCase prefill_case = prefill_of(descriptor, {{65, 300}, {100, 130}, {130, 200}, {33, 64}});
  prefill_case.query_positions = {100, -50, 1000, 31};
  prefill_case.prefix_lens =
      descriptor.mask == MaskKind::prefix_lm ? std::vector<int>{129, 0, 64, 7} : std::vector<int>{};
  return prefill_case;
}

void add_mask(ContractCases& cases, const std::string& name,
              const AttentionDescriptor& descriptor) {
  cases.push_back(reference_case(name, prefill_of(descriptor, edge_prefills())));
  cases.push_back(reference_case(name + ", queries elsewhere", at_positions(descriptor)));
}

AttentionDescriptor with_chunks(MaskKind mask, int chunk_size) {
  AttentionDescriptor descriptor = check::with_mask(ragged_12_4(), mask);
  descriptor.chunk_size = chunk_size;
  return descriptor;
}

ContractCases position_masks() {
  ContractCases cases;
  add_mask(cases, "null", check::with_mask(ragged_12_4(), MaskKind::none));
  add_mask(cases, "causal", ragged_12_4());
  add_mask(cases, "causal window", with_window(ragged_12_4(), 127, 0));
  add_mask(cases, "symmetric window", with_window(ragged_12_4(), 32, 32));
  add_mask(cases, "uneven window", with_window(ragged_12_4(), 99, 3));
  add_mask(cases, "window to the left", with_window(ragged_12_4(), 64, -1));
  add_mask(cases, "window to the right", with_window(ragged_12_4(), -1, 5));
  add_mask(cases, "chunked", with_chunks(MaskKind::chunked, 100));
  add_mask(cases, "chunked causal", with_chunks(MaskKind::chunked_causal, 100));
  return cases;
}

PrefillCase with_prefixes() {
  PrefillCase prefill_case =
      prefill_of(check::with_mask(ragged_12_4(), MaskKind::prefix_lm), edge_prefills());
  prefill_case.prefix_lens = {70, 5, 299, 0, 0, 63, 900, 5, 64};
  return prefill_case;
}

ContractCases memory_masks() {
  const auto masked = [&](MaskKind mask, DataType dtype) {
    PrefillCase prefill_case = prefill_of(check::with_mask(ragged_12_4(), mask), short_lengths);
    prefill_case.descriptor.dtype_mask = dtype;
    prefill_case.mask_extents.heads = check::MaskExtents::Heads::q;
    return prefill_case;
  };
  ContractCases cases;
  cases.push_back(reference_case("prefix LM", with_prefixes()));
  add_mask(cases, "document", check::with_mask(ragged_12_4(), MaskKind::document));
  cases.push_back(reference_case("bool", masked(MaskKind::materialized_bool, DataType::uint8)));
  cases.push_back(
      reference_case("additive", masked(MaskKind::materialized_additive, DataType::bf16)));
  cases.push_back(
      reference_case("packed bits", masked(MaskKind::materialized_bits, DataType::uint8)));
  cases.push_back(reference_case(
      "tree", prefill_of(check::with_mask(ragged_12_4(), MaskKind::tree),
                         {{1, 70}, {8, 300}, {9, 9}, {64, 129}, {130, 200}, {0, 5}, {17, 5}})));
  return cases;
}

ContractCases score_modifiers() {
  ContractCases cases;
  AttentionDescriptor descriptor = ragged_12_4();
  descriptor.score_modifier = ScoreModifier::softcap;
  for (const double cap : {0.5, 50.0}) {
    PrefillCase capped = prefill_of(descriptor, edge_prefills());
    capped.softcap = cap;
    cases.push_back(reference_case(cap < 1 ? "soft cap 0.5" : "soft cap 50", capped));
  }
  descriptor.score_modifier = ScoreModifier::alibi;
  add_mask(cases, "ALiBi", descriptor);
  return cases;
}

// And and or of masks by place, in memory and by an expression.
ContractCases composed_masks() {
  ContractCases cases;
  for (const std::string_view formula :
       {"causal and document", "causal and (sliding_window or document)",
        "document or causal and chunked_causal"}) {
    add_mask(cases, std::string(formula), check::composed(ragged_12_4(), formula));
  }
  for (const std::string_view formula :
       {"causal and materialized_bool", "materialized_bits and document or sliding_window",
        "tree or sliding_window", "materialized_additive and causal and document"}) {
    cases.push_back(reference_case(
        std::string(formula), prefill_of(check::composed(ragged_12_4(), formula), short_lengths)));
  }
  add_mask(cases, "causal and custom or document and sliding_window",
           check::composed(paged_12_4(), "causal and custom or document and sliding_window"));
  return cases;
}

// Users' masks and score modifiers.
ContractCases expressions() {
  ContractCases cases;
  AttentionDescriptor masked = check::with_mask(ragged_12_4(), MaskKind::custom);
  for (const std::string_view expression : check::custom_mask_expressions) {
    masked.mask_expression = expression;
    add_mask(cases, "custom mask " + std::string(expression), masked);
  }
  AttentionDescriptor modified = ragged_12_4();
  modified.score_modifier = ScoreModifier::custom;
  for (const std::string_view expression : check::custom_score_expressions) {
    modified.score_expression = expression;
    add_mask(cases, "custom score " + std::string(expression), modified);
  }
  return cases;
}

ContractCases biases() {
  ContractCases cases;
  AttentionDescriptor causal = ragged_12_4();
  causal.score_modifier = ScoreModifier::additive_bias;
  causal.dtype_bias = DataType::bf16;
  AttentionDescriptor additive = check::with_mask(causal, MaskKind::materialized_additive);
  additive.dtype_mask = DataType::bf16;
  for (const auto& [name, descriptor] : std::vector<std::pair<std::string, AttentionDescriptor>>{
           {"causal", causal},
           {"documents", check::with_mask(causal, MaskKind::document)},
           {"an additive mask", additive}}) {
    PrefillCase of_heads = prefill_of(descriptor, short_lengths);
    of_heads.mask_extents.heads = check::MaskExtents::Heads::q;
    cases.push_back(reference_case("bias per head beside " + name, of_heads));
    PrefillCase shared = prefill_of(descriptor, short_lengths);
    shared.mask_extents = {false, false, check::MaskExtents::Heads::one};
    cases.push_back(reference_case("one bias for all queries beside " + name, shared));
  }
  return cases;
}

ContractCases sinks() {
  ContractCases cases;
  AttentionDescriptor prefill = ragged_12_4();
  prefill.has_sinks = true;
  check::DecodeCase decode = gqa_decode(edge_lengths());
  decode.descriptor.has_sinks = true;
  for (const check::SinkSize size : {check::SinkSize::ordinary, check::SinkSize::large,
                                     check::SinkSize::negative, check::SinkSize::infinite}) {
    PrefillCase with_sinks = prefill_of(prefill, edge_prefills());
    with_sinks.sinks = decode.sinks = size;
    const std::string name = std::string(to_string(size)) + " sinks";
    cases.push_back(reference_case(name + ", prefill", with_sinks));
    cases.push_back(reference_case(name + ", decode", decode));
  }
  return cases;
}

ContractCases windows_of_decode() {
  ContractCases cases;
  for (const int left : {0, 63, 127}) {
    check::DecodeCase windowed = gqa_decode({9000, 0, 5, 300}, 2);
    windowed.descriptor = with_window(windowed.descriptor, left, 0);
    cases.push_back(
        reference_case("decode, window of " + std::to_string(left + 1) + " keys", windowed));
  }
  return cases;
}

ContractCases all_masks() {
  return joined(
      joined(joined(position_masks(), memory_masks()), joined(score_modifiers(), sinks())),
      joined(joined(composed_masks(), expressions()), joined(biases(), windows_of_decode())));
}

}  // namespace

std::vector<Requirement> mask_reading_rows() {
  return {{"§4.14",
           "Masks: null, causal, windows, chunks, prefix LM, documents, materialised, trees, and "
           "or or of any, a user's expression; score modifiers: soft cap, ALiBi, additive bias, a "
           "user's; sinks",
           all_masks(), ""}};
}

}  // namespace attnjit::contract
