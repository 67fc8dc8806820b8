#include "prefill_mask_suite.hpp"

#include <array>
#include <string>
#include <string_view>

namespace attnjit::check {
namespace {

using Suite = std::vector<PrefillSuiteCase>;

std::string named(std::string_view prefix, std::string_view name) {
  return std::string(prefix) + std::string(name);
}

AttentionDescriptor with_window(AttentionDescriptor descriptor, int left, int right) {
  descriptor.mask = MaskKind::sliding_window;
  descriptor.window_left = left;
  descriptor.window_right = right;
  return descriptor;
}

AttentionDescriptor with_chunks(AttentionDescriptor descriptor, MaskKind mask, int chunk_size) {
  descriptor.mask = mask;
  descriptor.chunk_size = chunk_size;
  return descriptor;
}

AttentionDescriptor with_modifier(AttentionDescriptor descriptor, ScoreModifier modifier) {
  descriptor.score_modifier = modifier;
  return descriptor;
}

AttentionDescriptor with_blocks(AttentionDescriptor descriptor, int block) {
  descriptor.sparsity = Sparsity::block;
  descriptor.sparsity_block = block;
  return descriptor;
}

AttentionDescriptor with_sinks(AttentionDescriptor descriptor) {
  descriptor.has_sinks = true;
  return descriptor;
}

// Small enough for a mask per query head to be drawn on the host.
Lengths short_lengths() {
  return {{129, 129}, {0, 65}, {64, 300}, {1, 127}, {63, 0}, {128, 63}};
}

std::vector<AttentionDescriptor> ragged_and_paged() {
  return {ragged_descriptor(12, 4, 128), paged_descriptor(12, 4, 128)};
}

// Queries and keys elsewhere: in the middle, where all keys lie ahead, where all lie far behind,
// and where nothing is special.
void add_positions(Suite& suite, const std::string& group, const AttentionDescriptor& descriptor,
                   const std::vector<int>& prefix_lens = {}) {
  const Lengths lengths = {{65, 300}, {100, 130}, {130, 200}, {33, 64}};
  PrefillCase& queries = add_prefill_case(suite, group, descriptor, lengths);
  queries.query_positions = {100, -50, 1000, 31};
  queries.prefix_lens = prefix_lens;
  PrefillCase& keys = add_prefill_case(suite, group, descriptor, lengths);
  keys.key_positions = {70, 5, 1000, 33};
  keys.prefix_lens = prefix_lens;
  PrefillCase& both = add_prefill_case(suite, group, descriptor, lengths);
  both.query_positions = {200, 3, 1129, 2000};
  both.key_positions = {70, 64, 1000, 1990};
  both.prefix_lens = prefix_lens;
}

void add_windows(Suite& suite) {
  struct Window {
    int left;
    int right;
    std::string_view name;
  };
  constexpr std::array<Window, 7> windows = {{{64, -1, "left only"},
                                              {-1, 5, "right only"},
                                              {32, 32, "symmetric"},
                                              {0, 0, "own key only"},
                                              {5000, 5000, "larger than any sequence"},
                                              {127, 0, "causal"},
                                              {99, 3, "uneven"}}};
  for (const auto& [left, right, name] : windows) {
    const std::string group = named("prefill, window, ", name);
    const AttentionDescriptor descriptor = with_window(ragged_descriptor(12, 4, 128), left, right);
    add_prefill_case(suite, group, descriptor, mixed_lengths());
    add_positions(suite, group, descriptor);
  }
  const AttentionDescriptor paged = with_window(paged_descriptor(12, 4, 128), 99, 3);
  for (const CacheArrangement arrangement : {CacheArrangement::pool, CacheArrangement::layered}) {
    add_prefill_case(suite, "prefill, window, paged", paged, mixed_lengths()).arrangement =
        arrangement;
  }
  add_positions(suite, "prefill, window, paged", paged);
  add_prefill_case(suite, "prefill, permuted pages, equal to the bit", paged, mixed_lengths());
  suite.back().is_permutation = true;
}

void add_chunks(Suite& suite) {
  for (const MaskKind mask : {MaskKind::chunked, MaskKind::chunked_causal}) {
    for (const int chunk_size : {1, 7, 64, 100}) {
      const std::string group = named("prefill, mask ", to_string(mask));
      const AttentionDescriptor descriptor =
          with_chunks(ragged_descriptor(12, 4, 128), mask, chunk_size);
      add_prefill_case(suite, group, descriptor, mixed_lengths());
      add_positions(suite, group, descriptor);
    }
  }
  const AttentionDescriptor paged =
      with_chunks(paged_descriptor(12, 4, 128), MaskKind::chunked_causal, 100);
  add_prefill_case(suite, "prefill, mask chunked_causal, paged", paged, mixed_lengths());
  add_positions(suite, "prefill, mask chunked_causal, paged", paged);
}

void add_plain(Suite& suite) {
  for (const AttentionDescriptor& descriptor : ragged_and_paged()) {
    for (const MaskKind mask : {MaskKind::none, MaskKind::causal}) {
      add_prefill_case(suite, named("prefill, mask ", to_string(mask)), with_mask(descriptor, mask),
                       mixed_lengths());
      add_positions(suite, named("prefill, mask ", to_string(mask)), with_mask(descriptor, mask));
    }
  }
}

void add_prefixes(Suite& suite) {
  for (const AttentionDescriptor& each : ragged_and_paged()) {
    const AttentionDescriptor descriptor = with_mask(each, MaskKind::prefix_lm);
    PrefillCase& added =
        add_prefill_case(suite, "prefill, mask prefix_lm", descriptor, mixed_lengths());
    added.prefix_lens = {70, 5, 299, 0, 0, 63, 900, 5, 64};  // one past the keys
    add_positions(suite, "prefill, mask prefix_lm", descriptor, {129, 0, 64, 7});
  }
}

void add_documents(Suite& suite) {
  for (const AttentionDescriptor& each : ragged_and_paged()) {
    const AttentionDescriptor descriptor = with_mask(each, MaskKind::document);
    for (const int tokens : {1, 40, 200}) {
      for (const QueryLayout layout : {QueryLayout::ragged, QueryLayout::bshd}) {
        PrefillCase& added =
            add_prefill_case(suite, "prefill, mask document", descriptor, mixed_lengths());
        added.segment_tokens = tokens;
        added.query_layout = layout;
        added.unowned_rows = 3;
      }
    }
    add_positions(suite, "prefill, mask document", descriptor);
  }
}

// Extents of a mask in memory, from one for all to one for each.
std::vector<MaskExtents> mask_extents() {
  using Heads = MaskExtents::Heads;
  return {{true, true, Heads::one},
          {true, true, Heads::q},
          {false, true, Heads::one},
          {true, false, Heads::q},
          {false, false, Heads::one}};
}

void add_trees(Suite& suite) {
  const Lengths drafts = {{1, 70}, {8, 300}, {9, 9}, {64, 129}, {130, 200}, {0, 5}, {17, 5}};
  for (const AttentionDescriptor& each : ragged_and_paged()) {
    const AttentionDescriptor descriptor = with_mask(each, MaskKind::tree);
    for (const MaskExtents& extents : mask_extents()) {
      if (extents.has_queries) {
        add_prefill_case(suite, "prefill, mask tree", descriptor, drafts).mask_extents = extents;
      }
    }
  }
}

void add_materialized(Suite& suite) {
  std::vector<AttentionDescriptor> descriptors;
  for (const AttentionDescriptor& each : ragged_and_paged()) {
    descriptors.push_back(with_mask(each, MaskKind::materialized_bool));
    descriptors.push_back(with_mask(each, MaskKind::materialized_bits));
    for (const DataType type : {DataType::bf16, DataType::fp16, DataType::fp32}) {
      descriptors.push_back(with_mask(each, MaskKind::materialized_additive));
      descriptors.back().dtype_mask = type;
    }
  }
  for (const AttentionDescriptor& descriptor : descriptors) {
    const std::string group = named("prefill, mask ", to_string(descriptor.mask));
    for (const MaskExtents& extents : mask_extents()) {
      for (const QueryLayout layout : {QueryLayout::ragged, QueryLayout::bhsd}) {
        PrefillCase& added = add_prefill_case(suite, group, descriptor, short_lengths());
        added.mask_extents = extents;
        added.query_layout = layout;
      }
    }
    add_prefill_case(suite, group + ", shorter than a sequence", descriptor, short_lengths())
        .mask_shortage = 76;
  }
}

void add_modifiers(Suite& suite) {
  const AttentionDescriptor ragged = ragged_descriptor(12, 4, 128);
  const AttentionDescriptor paged = paged_descriptor(12, 4, 128);
  for (const AttentionDescriptor& each :
       {ragged, with_mask(paged, MaskKind::none), with_window(paged, 99, 0)}) {
    const AttentionDescriptor descriptor = with_modifier(each, ScoreModifier::softcap);
    for (const double cap : {0.5, 2.0, 50.0}) {
      add_prefill_case(suite, "prefill, softcap", descriptor, mixed_lengths()).softcap = cap;
    }
    add_prefill_case(suite, "prefill, softcap", descriptor, mixed_lengths()).softmax_scale = -0.4;
  }
  for (const AttentionDescriptor& each :
       {ragged, with_mask(paged, MaskKind::none), ragged_descriptor(71, 1, 64),
        ragged_descriptor(128, 8, 64)}) {
    const AttentionDescriptor descriptor = with_modifier(each, ScoreModifier::alibi);
    add_prefill_case(suite, "prefill, alibi", descriptor, mixed_lengths());
    add_positions(suite, "prefill, alibi", descriptor);
  }
  AttentionDescriptor biased = with_mask(ragged, MaskKind::materialized_additive);
  biased.dtype_mask = DataType::bf16;
  add_prefill_case(suite, "prefill, softcap and additive mask",
                   with_modifier(biased, ScoreModifier::softcap), short_lengths());
}

void add_sinks(Suite& suite) {
  for (const AttentionDescriptor& descriptor :
       {with_sinks(ragged_descriptor(12, 4, 128)),
        with_sinks(with_window(paged_descriptor(64, 8, 64), 127, 0)),  // gpt-oss
        with_sinks(with_modifier(ragged_descriptor(12, 4, 128), ScoreModifier::softcap))}) {
    for (const SinkSize size :
         {SinkSize::ordinary, SinkSize::large, SinkSize::negative, SinkSize::infinite}) {
      add_prefill_case(suite, "prefill, sinks", descriptor, mixed_lengths()).sinks = size;
    }
  }
}

void add_blocks(Suite& suite) {
  using Heads = MaskExtents::Heads;
  std::vector<AttentionDescriptor> descriptors;
  for (const int block : {16, 32, 48, 64, 128}) {
    descriptors.push_back(with_blocks(ragged_descriptor(12, 4, 128), block));
  }
  const AttentionDescriptor paged = with_blocks(paged_descriptor(12, 4, 128), 64);
  descriptors.push_back(paged);
  descriptors.push_back(with_mask(paged, MaskKind::none));
  descriptors.push_back(with_window(paged, 99, 3));
  descriptors.push_back(with_mask(paged, MaskKind::document));
  for (const AttentionDescriptor& descriptor : descriptors) {
    const std::string group =
        "prefill, blocks of " + std::to_string(descriptor.sparsity_block) + " tokens";
    for (const Heads heads : {Heads::one, Heads::kv, Heads::q}) {
      for (const BlockPattern pattern :
           {BlockPattern::random, BlockPattern::empty_rows, BlockPattern::all}) {
        PrefillCase& added = add_prefill_case(suite, group, descriptor, mixed_lengths());
        added.mask_extents = {pattern != BlockPattern::random, true, heads};
        added.blocks = pattern;
      }
    }
    add_prefill_case(suite, group, descriptor, mixed_lengths()).block_shortage = 3;
  }
}

}  // namespace

std::vector<PrefillSuiteCase> prefill_mask_suite() {
  Suite suite;
  add_plain(suite);
  add_windows(suite);
  add_chunks(suite);
  add_prefixes(suite);
  add_documents(suite);
  add_trees(suite);
  add_materialized(suite);
  add_modifiers(suite);
  add_sinks(suite);
  add_blocks(suite);
  return suite;
}

}  // namespace attnjit::check
