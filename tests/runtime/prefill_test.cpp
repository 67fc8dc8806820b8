// How the views of a prefill become its kernel's arguments, and which calls are launched at all.
// None of it needs a GPU; running is tests/gpu's.
#include "attnjit/prefill.hpp"

#include <climits>
#include <string>
#include <vector>

#include "bad_call.hpp"
#include "catch.hpp"
#include "prefill_arguments.hpp"
#include "prefill_calls.hpp"

namespace attnjit::kernel_interface {

// Beside the structs, where lookup finds them.
static bool operator==(const CacheStrides& a, const CacheStrides& b) {
  return a.batch == b.batch && a.block == b.block && a.head == b.head && a.row == b.row;
}

static bool operator==(const QueryStrides& a, const QueryStrides& b) {
  return a.batch == b.batch && a.token == b.token && a.head == b.head;
}

static bool operator==(const MaskStrides& a, const MaskStrides& b) {
  return a.batch == b.batch && a.head == b.head && a.query == b.query && a.key == b.key;
}

}  // namespace attnjit::kernel_interface

namespace attnjit {
namespace {

using namespace test;
using namespace kernel_interface;

PrefillArguments arguments_of(const PrefillCase& prefill) {
  check_prefill_call(prefill.descriptor, prefill.call);
  return make_prefill_arguments(prefill.descriptor, prefill.call);
}

// Is refused, or launches nothing: there is no kernel behind it.
void run(const PrefillCase& prefill) {
  PreparedPrefill kernel;
  kernel.descriptor = prefill.descriptor;
  kernel.config.block_m = 128;
  kernel.config.q_per_kv = prefill.descriptor.q_per_kv();
  run_prefill(kernel, prefill.call, nullptr);
}

TEST_CASE("ragged queries and keys are found by their offsets") {
  PrefillCase prefill = ragged();
  prefill.call.softmax_scale = 0.25F;
  const PrefillArguments arguments = arguments_of(prefill);
  CHECK(arguments.q == fake_pointer(2));
  CHECK(arguments.k == fake_pointer(6));
  CHECK(arguments.v == fake_pointer(7));
  CHECK(arguments.out == fake_pointer(4));
  CHECK(arguments.lse == fake_pointer(5));
  CHECK(arguments.q_strides == QueryStrides{0, 8 * 128, 128});
  CHECK(arguments.out_strides == QueryStrides{0, 8 * 64, 64});
  CHECK(arguments.lse_strides == QueryStrides{0, 1, 50});
  CHECK(arguments.k_strides == CacheStrides{0, 0, 128, 2 * 128});
  CHECK(arguments.v_strides == CacheStrides{0, 0, 64, 2 * 64});
  CHECK(arguments.queries.offsets == fake_pointer(3));
  CHECK(arguments.queries.lengths == nullptr);
  CHECK(arguments.keys.offsets == fake_pointer(8));
  CHECK(arguments.keys.lengths == nullptr);
  CHECK(arguments.query_positions == nullptr);
  CHECK(arguments.key_positions == nullptr);
  CHECK(arguments.softmax_scale == 0.25F);
  CHECK(arguments.batch == 2);
  CHECK(arguments.num_kv_heads == 2);
}

TEST_CASE("dense queries and keys are found by the batch dimension, in the order of their tag") {
  PrefillCase prefill = dense(KvLayoutTag::bshd);
  prefill.call.q_lens = integers({2}, 10);
  prefill.call.seq_lens = integers({2}, 11);
  PrefillArguments arguments = arguments_of(prefill);
  CHECK(arguments.q_strides == QueryStrides{30 * 8 * 128, 8 * 128, 128});
  CHECK(arguments.out_strides == QueryStrides{30 * 8 * 64, 8 * 64, 64});
  CHECK(arguments.lse_strides == QueryStrides{8 * 30, 1, 30});
  CHECK(arguments.k_strides == CacheStrides{40 * 2 * 128, 0, 128, 2 * 128});
  CHECK(arguments.v_strides == CacheStrides{40 * 2 * 64, 0, 64, 2 * 64});
  CHECK(arguments.queries.offsets == nullptr);
  CHECK(arguments.queries.lengths == fake_pointer(10));
  CHECK(arguments.queries.extent == 30);
  CHECK(arguments.keys.offsets == nullptr);
  CHECK(arguments.keys.lengths == fake_pointer(11));
  CHECK(arguments.keys.extent == 40);
  CHECK(arguments.batch == 2);

  arguments = arguments_of(dense(KvLayoutTag::bhsd));
  CHECK(arguments.k_strides == CacheStrides{2 * 40 * 128, 0, 40 * 128, 128});
  CHECK(arguments.v_strides == CacheStrides{2 * 40 * 64, 0, 40 * 64, 64});
  CHECK(arguments.keys.extent == 40);
}

TEST_CASE("a dense q of dimensions [batch, heads, tokens, columns] is a view with other strides") {
  PrefillCase prefill = dense(KvLayoutTag::bshd);
  prefill.call.q = permuted_view(elements({2, 8, 30, 128}), {0, 2, 1, 3});
  CHECK(arguments_of(prefill).q_strides == QueryStrides{8 * 30 * 128, 128, 30 * 128});
}

TEST_CASE("paged keys are found by the block table, in pools and in caches of each request") {
  PrefillCase prefill = paged(KvLayoutTag::nhd);
  prefill.call.block_table.strides[0] = 7;
  prefill.call.query_positions = integers({2}, 12);
  prefill.call.key_positions = integers({2}, 13);
  PrefillArguments arguments = arguments_of(prefill);
  CHECK(arguments.k_strides == CacheStrides{0, 16 * 2 * 128, 128, 2 * 128});
  CHECK(arguments.v_strides == CacheStrides{0, 16 * 2 * 64, 64, 2 * 64});
  CHECK(arguments.block_table == fake_pointer(8));
  CHECK(arguments.block_table_stride == 7);
  CHECK(arguments.keys.offsets == nullptr);
  CHECK(arguments.keys.lengths == fake_pointer(9));
  CHECK(arguments.keys.extent == 5 * 16);  // no length reaches past the table
  CHECK(arguments.query_positions == fake_pointer(12));
  CHECK(arguments.key_positions == fake_pointer(13));

  arguments = arguments_of(paged(KvLayoutTag::hnd));
  CHECK(arguments.k_strides == CacheStrides{9 * 2 * 16 * 128, 2 * 16 * 128, 16 * 128, 128});
  CHECK(arguments.v_strides == CacheStrides{9 * 2 * 16 * 64, 2 * 16 * 64, 16 * 64, 64});
}

TEST_CASE("a block table of more keys than an int counts covers as many as it counts") {
  PrefillCase prefill = paged(KvLayoutTag::nhd);
  prefill.call.block_table = integers({2, std::int64_t{1} << 28});
  CHECK(arguments_of(prefill).keys.extent == INT_MAX);
}

TEST_CASE("a materialized mask of a prefill is read by strides, 0 where one serves all") {
  PrefillCase prefill = dense(KvLayoutTag::bshd);
  prefill.descriptor.mask = MaskKind::materialized_bool;
  prefill.call.mask = bytes({1, 8, 32, 50}, 14);
  PrefillMask mask = arguments_of(prefill).mask;
  CHECK(mask.mask == fake_pointer(14));
  CHECK(mask.strides == MaskStrides{0, 32 * 50, 50, 1});
  CHECK(mask.queries == 32);
  CHECK(mask.keys == 50);
  prefill.call.mask = bytes({2, 1, 1, 50});
  mask = arguments_of(prefill).mask;
  CHECK(mask.strides == MaskStrides{50, 0, 0, 1});
  CHECK(mask.queries == INT_MAX);
}

TEST_CASE("packed bits cover eight keys a byte") {
  PrefillCase prefill = ragged();
  for (const MaskKind kind : {MaskKind::materialized_bits, MaskKind::tree}) {
    prefill.descriptor.mask = kind;
    prefill.call.mask = bytes({2, 1, 30, 5});
    const PrefillMask mask = arguments_of(prefill).mask;
    CHECK(mask.keys == 40);
    CHECK(mask.queries == 30);
    CHECK(mask.strides == MaskStrides{150, 0, 5, 1});
  }
}

TEST_CASE("segments, prefixes and slopes are handed on, rows of segments with their stride") {
  PrefillCase prefill = paged(KvLayoutTag::nhd);
  prefill.descriptor.mask = MaskKind::document;
  prefill.descriptor.score_modifier = ScoreModifier::alibi;
  prefill.descriptor.has_sinks = true;
  prefill.call.q_segments = integers({50}, 15);
  prefill.call.kv_segments = integers({2, 75}, 16);
  prefill.call.kv_segments.strides[0] = 80;
  prefill.call.alibi_slopes = fp32_numbers({8}, 17);
  prefill.call.sinks = fp32_numbers({8}, 18);
  PrefillArguments arguments = arguments_of(prefill);
  CHECK(arguments.mask.q_segments == fake_pointer(15));
  CHECK(arguments.mask.kv_segments == fake_pointer(16));
  CHECK(arguments.mask.kv_segment_stride == 80);
  CHECK(arguments.mask.segment_keys == 75);
  CHECK(arguments.mask.alibi_slopes == fake_pointer(17));
  CHECK(arguments.sinks == fake_pointer(18));

  prefill = ragged();
  prefill.descriptor.mask = MaskKind::document;
  prefill.call.q_segments = integers({50});
  prefill.call.kv_segments = integers({70});
  CHECK(arguments_of(prefill).mask.segment_keys == INT_MAX);  // one for each key
  CHECK(arguments_of(prefill).mask.kv_segment_stride == 0);

  prefill = ragged();
  prefill.descriptor.mask = MaskKind::prefix_lm;
  prefill.descriptor.score_modifier = ScoreModifier::softcap;
  prefill.call.prefix_lens = integers({2}, 19);
  prefill.call.softcap = 50.0F;
  arguments = arguments_of(prefill);
  CHECK(arguments.mask.prefix_lens == fake_pointer(19));
  CHECK(arguments.mask.softcap == 50.0F);
}

TEST_CASE("a block layout has rows for all heads, for those of a kv head, or for each") {
  PrefillCase prefill = ragged();
  prefill.descriptor.sparsity = Sparsity::block;
  prefill.descriptor.sparsity_block = 64;
  const auto mask_of = [&](std::initializer_list<std::int64_t> shape) {
    prefill.call.block_mask = bytes(shape, 20);
    return arguments_of(prefill).mask;
  };
  PrefillMask mask = mask_of({2, 8, 3, 5});
  CHECK(mask.blocks == fake_pointer(20));
  CHECK(mask.block_strides == MaskStrides{8 * 15, 15, 5, 1});
  CHECK(mask.block_heads == 4);
  CHECK(mask.query_blocks == 3);
  CHECK(mask.key_blocks == 5);
  mask = mask_of({2, 2, 3, 5});
  CHECK(mask.block_strides == MaskStrides{2 * 15, 15, 5, 1});
  CHECK(mask.block_heads == 1);
  // One block of queries or keys is one block, and not one for all.
  mask = mask_of({1, 1, 1, 1});
  CHECK(mask.block_strides == MaskStrides{0, 0, 1, 1});
  CHECK(mask.block_heads == 1);
  CHECK(mask.query_blocks == 1);
  CHECK(mask.key_blocks == 1);
}

TEST_CASE("a block layout may come in compressed rows") {
  PrefillCase prefill = ragged();
  prefill.descriptor.sparsity = Sparsity::block;
  prefill.descriptor.sparsity_block = 64;
  prefill.call.block_rows = integers({2, 8, 4}, 20);
  prefill.call.block_columns = integers({5}, 21);
  const PrefillMask mask = arguments_of(prefill).mask;
  CHECK(mask.blocks == nullptr);
  CHECK(mask.block_rows == fake_pointer(20));
  CHECK(mask.block_columns == fake_pointer(21));
  CHECK(mask.block_strides == MaskStrides{8 * 4, 4, 1, 0});
  CHECK(mask.block_heads == 4);
  CHECK(mask.query_blocks == 3);
}

TEST_CASE("a prefill of no requests or of no tokens is done before it is launched") {
  PrefillCase prefill = ragged();
  prefill.call.q_offsets = prefill.call.kv_offsets = integers({1});
  CHECK_NOTHROW(run(prefill));

  prefill = ragged();
  prefill.call.q = elements({0, 8, 128});
  prefill.call.out = elements({0, 8, 64});
  prefill.call.lse = fp32_numbers({8, 0});
  CHECK_NOTHROW(run(prefill));

  for (const auto& [batch, tokens] : {std::pair(0, 30), std::pair(2, 0)}) {
    prefill = dense(KvLayoutTag::bshd);
    prefill.call.q = elements({batch, tokens, 8, 128});
    prefill.call.out = elements({batch, tokens, 8, 64});
    prefill.call.k = elements({batch, 40, 2, 128});
    prefill.call.v = elements({batch, 40, 2, 64});
    prefill.call.lse = {};
    CHECK_NOTHROW(run(prefill));
  }
}

// Of `requests` requests of `tokens` query tokens each.
PrefillCase dense_of(std::int64_t requests, std::int64_t tokens) {
  PrefillCase prefill = dense(KvLayoutTag::bshd);
  prefill.call.q = elements({requests, tokens, 8, 128});
  prefill.call.out = elements({requests, tokens, 8, 64});
  prefill.call.k = elements({requests, 40, 2, 128});
  prefill.call.v = elements({requests, 40, 2, 64});
  prefill.call.lse = {};
  return prefill;
}

PrefillCase ragged_of(std::int64_t requests, std::int64_t tokens) {
  PrefillCase prefill = ragged();
  prefill.call.q = elements({tokens, 8, 128});
  prefill.call.out = elements({tokens, 8, 64});
  prefill.call.lse = {};
  prefill.call.q_offsets = prefill.call.kv_offsets = integers({requests + 1});
  return prefill;
}

// Of rows, 4 to a query token, and of tiles of 128 rows.
TEST_CASE("a prefill of more rows or row tiles than a grid has is refused by q") {
  const std::vector<PrefillCase> too_large = {
      ragged_of(2, (std::int64_t{INT_MAX} - 128) / 4 + 1),
      ragged_of(std::int64_t{INT_MAX}, 1 << 10),
      ragged_of(std::int64_t{1} << 32, 1 << 10),
      dense_of(1, (std::int64_t{INT_MAX} - 128) / 4 + 1),
      dense_of(1 << 16, 32 * (1 << 15)),
      dense_of(std::int64_t{1} << 32, 1),
  };
  for (const PrefillCase& prefill : too_large) {
    const std::vector<Violation> violations = test::violations_of([&] { run(prefill); });
    REQUIRE(violations.size() == 1);
    CHECK(violations[0].field == "q");
    CHECK(violations[0].rule.find("tiles of 128") != std::string::npos);
    CHECK(violations[0].fix == "split the batch");
  }
}

}  // namespace
}  // namespace attnjit
