// What a prefill problem's queries see: by hand for each kind of mask, and as the fp64 reference on
// the GPU decides it, whose rule is compiled here too.
#include "prefill_case.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "attnjit/mask_formula.hpp"
#include "catch.hpp"
#include "custom_expressions.hpp"
#include "mask_contents.hpp"
#include "prefill_composition_suite.hpp"
#include "prefill_mask_suite.hpp"
#include "prefill_suite.hpp"
#include "prefill_tensors.hpp"
#include "reference_attention.hpp"
#include "reference_visibility.h"

namespace attnjit::check {
namespace {

PrefillCase example_case(MaskKind mask, const Lengths& lengths) {
  std::vector<PrefillSuiteCase> suite;
  PrefillCase prefill_case =
      add_prefill_case(suite, "example", ragged_descriptor(4, 2, 64), lengths);
  prefill_case.descriptor.mask = mask;
  return prefill_case;
}

// The keys that a query sees, "x" each, and "." those that it does not.
std::string row(const PrefillCase& prefill_case, int request, int query, int head = 0) {
  std::string text;
  for (int key = 0; key < prefill_case.kv_len(request); ++key) {
    text += is_visible(prefill_case, request, head, query, key) ? 'x' : '.';
  }
  return text;
}

void check_range(const KeyRange& keys, std::int64_t begin, std::int64_t end) {
  CHECK(keys.begin == begin);
  CHECK(keys.end == end);
}

TEST_CASE("without a mask a query sees every key") {
  CHECK(row(example_case(MaskKind::none, {{2, 5}}), 0, 0) == "xxxxx");
}

TEST_CASE("a causal query sees up to its own key, which is the last one for the last query") {
  const PrefillCase more_keys = example_case(MaskKind::causal, {{3, 5}});
  CHECK(row(more_keys, 0, 0) == "xxx..");
  CHECK(row(more_keys, 0, 2) == "xxxxx");
  const PrefillCase more_queries = example_case(MaskKind::causal, {{0, 1}, {4, 2}});
  CHECK(row(more_queries, 1, 0) == "..");
  CHECK(row(more_queries, 1, 1) == "..");
  CHECK(row(more_queries, 1, 2) == "x.");
  CHECK(row(more_queries, 1, 3) == "xx");
}

TEST_CASE("positions that are given move queries and keys") {
  PrefillCase moved = example_case(MaskKind::causal, {{2, 5}});
  moved.query_positions = {1};
  CHECK(row(moved, 0, 0) == "xx...");
  CHECK(row(moved, 0, 1) == "xxx..");
  check_range(reachable_keys(moved, 0), 0, 3);
  moved.key_positions = {1};
  CHECK(row(moved, 0, 0) == "x....");
  moved.query_positions.clear();  // the last query is at the last key's position, wherever that is
  CHECK(row(moved, 0, 0) == "xxxx.");
}

TEST_CASE("a window reaches to both sides of a query, or to one of them without end") {
  PrefillCase window = example_case(MaskKind::sliding_window, {{3, 7}});
  window.descriptor.window_left = 2;
  window.descriptor.window_right = 1;
  CHECK(row(window, 0, 0) == "..xxxx.");
  CHECK(row(window, 0, 2) == "....xxx");
  check_range(reachable_keys(window, 0), 2, 7);
  window.descriptor.window_right = -1;
  CHECK(row(window, 0, 0) == "..xxxxx");
  window.descriptor.window_left = -1;
  window.descriptor.window_right = 0;
  CHECK(row(window, 0, 0) == "xxxxx..");
  window.descriptor.window_left = 0;
  CHECK(row(window, 0, 1) == ".....x.");
  check_range(reachable_keys(window, 0), 4, 7);
}

TEST_CASE("chunks are of absolute positions, before the first key too") {
  PrefillCase chunks = example_case(MaskKind::chunked, {{3, 8}});
  chunks.descriptor.chunk_size = 3;
  CHECK(row(chunks, 0, 0) == "...xxx..");  // position 5
  CHECK(row(chunks, 0, 1) == "......xx");  // position 6
  chunks.key_positions = {1};
  chunks.query_positions = {3};
  CHECK(row(chunks, 0, 0) == "..xxx...");  // positions 3 to 5 are keys 2 to 4
  check_range(reachable_keys(chunks, 0), 2, 5);
  chunks.descriptor.mask = MaskKind::chunked_causal;
  CHECK(row(chunks, 0, 1) == "..xx....");
  chunks.key_positions = {-2};
  chunks.query_positions = {-3};
  CHECK(row(chunks, 0, 0) == "........");
  CHECK(row(chunks, 0, 2) == "xx......");  // position -1 shares its chunk with -3 and -2
}

TEST_CASE("the keys of a prefix are seen by all queries, those after it causally") {
  PrefillCase prefix = example_case(MaskKind::prefix_lm, {{3, 5}, {2, 2}});
  prefix.prefix_lens = {4, 0};
  CHECK(row(prefix, 0, 0) == "xxxx.");
  CHECK(row(prefix, 0, 2) == "xxxxx");
  CHECK(row(prefix, 1, 0) == "x.");
}

TEST_CASE("a document sees itself only") {
  PrefillCase documents = example_case(MaskKind::document, {{30, 50}});
  documents.segment_tokens = 10;
  const std::string seen = row(documents, 0, 0);  // position 20, third document
  CHECK(seen.substr(20, 10) == std::string(10, 'x'));
  for (int key = 0; key < 50; ++key) {
    const bool is_same = segment_id(documents, key) == segment_id(documents, 20);
    CHECK((seen[static_cast<std::size_t>(key)] == 'x') == is_same);
  }
  CHECK(seen.find('.') != std::string::npos);
  CHECK(segment_id(documents, -1) == segment_id(documents, -10));
}

TEST_CASE("a composed mask shows what its masks show, joined as they are") {
  PrefillCase composed = example_case(MaskKind::composed, {{3, 8}});
  composed.prefix_lens = {2};
  composed.descriptor.window_left = 1;
  composed.descriptor.window_right = 1;
  composed.descriptor.chunk_size = 3;
  composed.descriptor.mask_formula = "sliding_window or prefix_lm and chunked";
  CHECK(row(composed, 0, 0) == "...xxxx.");  // position 5: the window 4 to 6, 3 and 4 of its chunk
  composed.descriptor.mask_formula = "causal and sliding_window or prefix_lm and chunked";
  CHECK(row(composed, 0, 1) == ".....xx.");
  check_range(reachable_keys(composed, 0), 3, 8);
  composed.descriptor.mask_formula = "sliding_window and chunked";
  CHECK(row(composed, 0, 0) == "....xx..");
  CHECK(row(composed, 0, 1) == "......xx");
  check_range(reachable_keys(composed, 0), 4, 8);
}

TEST_CASE("a custom mask shows what its expression says of positions") {
  PrefillCase custom = example_case(MaskKind::custom, {{3, 8}});
  custom.descriptor.mask_expression = custom_mask_expressions[custom_mask_dilated];
  CHECK(row(custom, 0, 0) == "x.xx.x..");
  custom.query_positions = {6};
  custom.key_positions = {4};
  CHECK(row(custom, 0, 0) == "x.x.....");
}

TEST_CASE("a query of a tree sees what comes before the tree, itself and some of the others") {
  const PrefillCase tree = example_case(MaskKind::tree, {{40, 100}});
  for (const int query : {0, 7, 39}) {
    const std::string seen = row(tree, 0, query);
    CHECK(seen.substr(0, 60) == std::string(60, 'x'));
    CHECK(seen.substr(static_cast<std::size_t>(60 + query), 1) == "x");
    CHECK(seen.find('x', static_cast<std::size_t>(61 + query)) == std::string::npos);
  }
  const std::string drafts = row(tree, 0, 39).substr(60);
  CHECK(drafts.find('.') != std::string::npos);
  CHECK(drafts.find('x') < 39);
}

TEST_CASE("a materialized mask hides what it says, and all keys past its end") {
  for (const MaskKind mask : {MaskKind::materialized_bool, MaskKind::materialized_bits,
                              MaskKind::materialized_additive}) {
    PrefillCase masked = example_case(mask, {{5, 100}, {5, 30}});
    masked.mask_shortage = 20;
    const std::string seen = row(masked, 0, 3);
    CHECK(seen.substr(80) == std::string(20, '.'));
    CHECK(seen.find("x.") < 20);
    CHECK(row(masked, 0, 4) != seen);
    CHECK(row(masked, 1, 3) != seen.substr(0, 30));
    CHECK(row(masked, 0, 3, 1) == seen);  // one for all heads
    masked.mask_extents = {false, false, MaskExtents::Heads::q};
    CHECK(row(masked, 0, 4) == row(masked, 0, 3));
    CHECK(row(masked, 1, 3) == row(masked, 0, 3).substr(0, 30));
    CHECK(row(masked, 0, 3, 1) != row(masked, 0, 3));
  }
}

TEST_CASE("a block-sparse layout hides whole blocks of what the mask shows") {
  PrefillCase blocks = example_case(MaskKind::causal, {{128, 128}});
  blocks.descriptor.sparsity = Sparsity::block;
  blocks.descriptor.sparsity_block = 16;
  blocks.mask_extents.heads = MaskExtents::Heads::kv;
  for (int query = 0; query < 128; ++query) {
    std::string expected;
    for (int key = 0; key < 128; ++key) {
      const bool is_seen = key <= query && block_bit(blocks, 0, 0, query / 16, key / 16);
      expected += is_seen ? 'x' : '.';
    }
    CHECK(row(blocks, 0, query) == expected);
    CHECK(row(blocks, 0, query, 1) == expected);  // the same kv head
  }
  CHECK(row(blocks, 0, 127, 0) != row(blocks, 0, 127, 2));
  blocks.blocks = BlockPattern::empty_rows;
  CHECK(row(blocks, 0, 20) == std::string(128, '.'));
  blocks.blocks = BlockPattern::all;
  CHECK(row(blocks, 0, 127) == std::string(128, 'x'));
  blocks.block_shortage = 2;
  CHECK(row(blocks, 0, 127) == std::string(96, 'x') + std::string(32, '.'));
}

// The call of a case, its small tensors in this process's memory.
struct HostCall {
  explicit HostCall(const PrefillCase& prefill_case) : tensors(make_small_tensors(prefill_case)) {
    PrefillCall& call = reference.call;
    call.q = query_view(prefill_case, DataType::bf16, prefill_case.descriptor.head_dim_qk);
    call.k = prefill_case.descriptor.kv_layout == KvLayout::paged
                 ? lay_out_cache(prefill_case.descriptor, CacheArrangement::pool, 1, 1, 64).view
                 : key_view(prefill_case, prefill_case.descriptor.head_dim_qk);
    for (SmallTensor& tensor : tensors) {
      call.*tensor.place = tensor.view;
      (call.*tensor.place).data = tensor.bytes.data();
    }
    reference.descriptor = prefill_case.descriptor;
    reference.batch = prefill_case.batch();
  }

  std::vector<SmallTensor> tensors;
  ReferenceCall reference;
};

float additive_value(const PairTensor& pairs, DataType type, long long index) {
  if (type == DataType::fp32) {
    return static_cast<const float*>(pairs.data)[index];
  }
  const std::uint16_t bits = static_cast<const std::uint16_t*>(pairs.data)[index];
  if (type == DataType::bf16) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  const int exponent = bits >> 10 & 0x1f;
  const float magnitude =
      exponent == 31 ? std::numeric_limits<float>::infinity()
                     : std::ldexp(static_cast<float>(1024 + (bits & 0x3ff)), exponent - 25);
  const float value = (bits & 0x7fff) == 0 ? 0.0F : magnitude;
  return bits >> 15 != 0 ? -value : value;
}

// Where reference and case disagree about a request and head; of some queries, for time's sake.
int count_differences(const PrefillCase& prefill_case, const ReferenceArguments& arguments,
                      int request, int head) {
  constexpr int query_step = 7;
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  const bool is_additive = has_mask(descriptor, MaskKind::materialized_additive);
  const KeyRange reachable = reachable_keys(prefill_case, request);
  int differences = 0;
  for (int query = 0; query < prefill_case.q_len(request); query += query_step) {
    const QueryPlace place = place_query(arguments, request, head, query);
    for (int key = 0; key < prefill_case.kv_len(request); ++key) {
      const bool expected = is_visible(prefill_case, request, head, query, key);
      bool is_seen = sees(arguments, place, key);
      if (is_additive && is_seen) {
        const float value =
            additive_value(arguments.mask.pairs, descriptor.dtype_mask,
                           pair_index(arguments.mask.pairs, request, head, query, key));
        differences += value != mask_value(prefill_case, request, head, query, key) ? 1 : 0;
        is_seen = !std::isinf(value);
      }
      const bool is_unreachable = key < reachable.begin || key >= reachable.end;
      differences += is_seen != expected || (is_seen && is_unreachable) ? 1 : 0;
    }
  }
  return differences;
}

std::vector<PrefillSuiteCase> cases_of_masks() {
  std::vector<PrefillSuiteCase> cases = prefill_mask_suite();
  for (PrefillSuiteCase& suite_case : prefill_composition_suite()) {
    cases.push_back(std::move(suite_case));
  }
  return cases;
}

TEST_CASE("the fp64 reference sees exactly what a case says, for every case of the mask suites") {
  for (const PrefillSuiteCase& suite_case : cases_of_masks()) {
    const PrefillCase& prefill_case = suite_case.prefill_case;
    INFO(suite_case.group << ": " << describe(prefill_case));
    const HostCall host(prefill_case);
    const ReferenceArguments arguments = make_reference_arguments(host.reference);
    for (int request = 0; request < prefill_case.batch(); ++request) {
      CHECK(count_tokens(arguments.queries, request) == prefill_case.q_len(request));
      CHECK(count_tokens(arguments.keys, request) == prefill_case.kv_len(request));
      for (const int head : {1, prefill_case.descriptor.num_q_heads - 1}) {
        CHECK(count_differences(prefill_case, arguments, request, head) == 0);
      }
    }
  }
}

TEST_CASE("a prefill case says what is special about it") {
  PrefillCase prefill_case = example_case(MaskKind::sliding_window, {{3, 7}, {0, 300}});
  prefill_case.descriptor.window_left = 9;
  prefill_case.descriptor.has_sinks = true;
  CHECK(describe(prefill_case) ==
        "prefill 64/64 h 4/2 bf16 sliding_window 9/-1, sinks ordinary | b 2 s_q 0-3 s_k 7-300 | "
        "q ragged k thd");
  CHECK(count_values(prefill_case) == 3 * 4 * 65);
}

}  // namespace
}  // namespace attnjit::check
