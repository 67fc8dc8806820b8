// The checks of a prefill call, and how views become the kernel's arguments. None of it needs a
// GPU.
#include "prefill_arguments.hpp"

#include <limits>
#include <string>
#include <vector>

#include "bad_call.hpp"
#include "catch.hpp"
#include "prefill_calls.hpp"

namespace attnjit {
namespace {

using namespace test;
using BadCall = test::BadCall<PrefillCall>;

void* misaligned(std::uintptr_t bytes) {
  return reinterpret_cast<void*>(std::uintptr_t{0x1000} + bytes);
}

std::vector<Violation> violations_of(const PrefillCase& prefill) {
  return test::violations_of([&] { check_prefill_call(prefill.descriptor, prefill.call); });
}

// Of the change that `spoil` makes.
std::vector<Violation> violations_with(PrefillCase prefill,
                                       const std::function<void(PrefillCase&)>& spoil) {
  spoil(prefill);
  return violations_of(prefill);
}

void check_bad_prefills(const std::vector<BadCall>& bad_calls, const PrefillCase& prefill) {
  REQUIRE(violations_of(prefill).empty());
  check_bad_calls(bad_calls, prefill.call,
                  [&](const PrefillCall& call) { check_prefill_call(prefill.descriptor, call); });
}

TEST_CASE("a legal prefill call passes in every layout, with and without what is optional") {
  for (PrefillCase prefill : {ragged(), dense(KvLayoutTag::bshd), dense(KvLayoutTag::bhsd),
                              paged(KvLayoutTag::nhd), paged(KvLayoutTag::hnd)}) {
    CHECK(violations_of(prefill).empty());
    PrefillCall& call = prefill.call;
    call.lse = {};
    CHECK(violations_of(prefill).empty());
    call.query_positions = call.key_positions = integers({2});
    CHECK(violations_of(prefill).empty());
    call.seq_lens = integers({2});
    CHECK(violations_of(prefill).empty());
  }
}

TEST_CASE("each bad argument of ragged queries and keys is named with its rule") {
  check_bad_prefills(
      {
          {"q", "must be given", [](PrefillCall& c) { c.q.data = nullptr; }},
          {"q", "must be bf16", [](PrefillCall& c) { c.q.dtype = DataType::fp16; }},
          {"q", "must have shape [any, 8, 128]", [](PrefillCall& c) { c.q.shape[1] = 7; }},
          {"q", "16-byte aligned", [](PrefillCall& c) { c.q.data = misaligned(8); }},
          {"q", "stride 1", [](PrefillCall& c) { c.q.strides[2] = 2; }},
          {"q", "multiples of 8", [](PrefillCall& c) { c.q.strides[0] = 1028; }},
          {"q", "multiples of 8", [](PrefillCall& c) { c.q.strides[1] = -128; }},
          {"q_offsets", "must be given", [](PrefillCall& c) { c.q_offsets.data = nullptr; }},
          {"q_offsets", "must be int32",
           [](PrefillCall& c) { c.q_offsets.dtype = DataType::fp32; }},
          {"q_offsets", "stride 1", [](PrefillCall& c) { c.q_offsets.strides[0] = 2; }},
          {"q_offsets", "4-byte aligned", [](PrefillCall& c) { c.q_offsets.data = misaligned(2); }},
          {"q_lens", "must not be given: q_offsets",
           [](PrefillCall& c) { c.q_lens = integers({2}); }},
          {"k", "must be given", [](PrefillCall& c) { c.k.data = nullptr; }},
          {"k", "must be bf16", [](PrefillCall& c) { c.k.dtype = DataType::fp16; }},
          {"k", "must have shape [any, 2, 128]", [](PrefillCall& c) { c.k.shape[1] = 1; }},
          {"k", "multiples of 8", [](PrefillCall& c) { c.k.strides[0] = 100; }},
          {"v", "must be given", [](PrefillCall& c) { c.v = {}; }},
          {"v", "must have shape [70, 2, 64]", [](PrefillCall& c) { c.v.shape[0] = 69; }},
          {"v", "must have shape [70, 2, 64]", [](PrefillCall& c) { c.v.shape[2] = 128; }},
          {"kv_offsets", "must be given", [](PrefillCall& c) { c.kv_offsets = {}; }},
          {"kv_offsets", "must have shape [3]", [](PrefillCall& c) { c.kv_offsets.shape[0] = 2; }},
          {"seq_lens", "must have shape [2]", [](PrefillCall& c) { c.seq_lens = integers({3}); }},
          {"block_table", "must not be given: the keys are not paged",
           [](PrefillCall& c) {
             c.block_table = integers({2, 5});
           }},
          {"query_positions", "must have shape [2]",
           [](PrefillCall& c) { c.query_positions = integers({1}); }},
          {"key_positions", "must be int32",
           [](PrefillCall& c) { c.key_positions = fp32_numbers({2}); }},
          {"out", "must be given", [](PrefillCall& c) { c.out = {}; }},
          {"out", "must have shape [50, 8, 64]", [](PrefillCall& c) { c.out.shape[2] = 128; }},
          {"out", "must have shape [50, 8, 64]", [](PrefillCall& c) { c.out.shape[0] = 49; }},
          {"out", "at least 1", [](PrefillCall& c) { c.out.strides[0] = 0; }},
          {"lse", "must be fp32", [](PrefillCall& c) { c.lse.dtype = DataType::bf16; }},
          {"lse", "must have shape [8, 50]", [](PrefillCall& c) { c.lse.shape[0] = 2; }},
          {"lse", "at least 1", [](PrefillCall& c) { c.lse.strides[1] = 0; }},
          {"softmax_scale", "must be finite",
           [](PrefillCall& c) { c.softmax_scale = std::numeric_limits<float>::infinity(); }},
      },
      ragged());
}

TEST_CASE("each bad argument of dense queries and keys is named with its rule") {
  check_bad_prefills(
      {
          {"q", "must have shape [any, any, 8, 128]", [](PrefillCall& c) { c.q.shape[3] = 64; }},
          {"q_offsets", "must not be given: q is dense",
           [](PrefillCall& c) { c.q_offsets = integers({3}); }},
          {"q_lens", "must have shape [2]", [](PrefillCall& c) { c.q_lens = integers({3}); }},
          {"kv_offsets", "must not be given: the keys are not ragged",
           [](PrefillCall& c) { c.kv_offsets = integers({3}); }},
          {"k", "must have shape [2, any, 2, 128]", [](PrefillCall& c) { c.k.shape[0] = 1; }},
          {"v", "must have shape [2, 40, 2, 64]", [](PrefillCall& c) { c.v.shape[1] = 41; }},
          {"out", "must have shape [2, 30, 8, 64]", [](PrefillCall& c) { c.out.shape[1] = 29; }},
          {"lse", "must have shape [2, 8, 30]", [](PrefillCall& c) { c.lse.shape[2] = 31; }},
          {"lse", "at least 1", [](PrefillCall& c) { c.lse.strides[0] = -240; }},
      },
      dense(KvLayoutTag::bshd));
  check_bad_prefills(
      {
          {"k", "must have shape [2, 2, any, 128]", [](PrefillCall& c) { c.k.shape[1] = 40; }},
          {"v", "must have shape [2, 2, 40, 64]", [](PrefillCall& c) { c.v.shape[2] = 41; }},
      },
      dense(KvLayoutTag::bhsd));
}

TEST_CASE("each bad argument of paged keys is named with its rule") {
  check_bad_prefills(
      {
          {"k", "must have shape [any, 16, 2, 128]", [](PrefillCall& c) { c.k.shape[1] = 64; }},
          {"k", "must not be empty", [](PrefillCall& c) { c.k.shape[0] = 0; }},
          {"v", "must have shape [any, 16, 2, 64]", [](PrefillCall& c) { c.v.shape[3] = 128; }},
          {"block_table", "must be given", [](PrefillCall& c) { c.block_table = {}; }},
          {"block_table", "must have shape [2, any]",
           [](PrefillCall& c) { c.block_table.shape[0] = 3; }},
          {"block_table", "must not be empty", [](PrefillCall& c) { c.block_table.shape[1] = 0; }},
          {"block_table", "stride 1", [](PrefillCall& c) { c.block_table.strides[1] = 2; }},
          {"seq_lens", "must be given", [](PrefillCall& c) { c.seq_lens = {}; }},
          {"kv_offsets", "must not be given", [](PrefillCall& c) { c.kv_offsets = integers({3}); }},
      },
      paged(KvLayoutTag::nhd));
  const auto of_fewer_requests = [](PrefillCase& prefill) {
    prefill.call.k = elements({1, 9, 2, 16, 128});
  };
  const auto violations = violations_with(paged(KvLayoutTag::hnd), of_fewer_requests);
  REQUIRE(violations.size() == 1);
  CHECK(violations[0].rule == "must have shape [2, any, 2, 16, 128]");
}

TEST_CASE("a prefill's v is refused where it is a prefix of k") {
  PrefillCase prefill = paged(KvLayoutTag::nhd);
  prefill.descriptor.value_source = ValueSource::prefix_of_k;
  const std::vector<Violation> violations = violations_of(prefill);
  REQUIRE(violations.size() == 1);
  CHECK(violations[0].field == "v");
  CHECK(violations[0].rule == "must not be given: v is a prefix of k in the descriptor");
  prefill.call.v = {};
  CHECK(violations_of(prefill).empty());
}

TEST_CASE("everything that is wrong with a prefill is told at once") {
  PrefillCase prefill = ragged();
  prefill.call.q.dtype = DataType::fp16;
  prefill.call.v = {};
  prefill.call.sinks = fp32_numbers({8});
  prefill.call.softcap = 30.0F;
  prefill.call.mask = elements({1, 1, 1, 9});
  CHECK(violations_of(prefill).size() == 5);
}

TEST_CASE("an empty call is refused by what it lacks, whatever the descriptor reads") {
  for (PrefillCase prefill : {ragged(), dense(KvLayoutTag::bhsd), paged(KvLayoutTag::nhd)}) {
    prefill.call = {};
    const std::vector<Violation> violations = violations_of(prefill);
    CHECK(violations.size() >= 4);
    for (const Violation& violation : violations) {
      CHECK(violation.rule == "must be given");
    }
  }
}

TEST_CASE("what the descriptor does not read must not be given to a prefill") {
  const PrefillCase prefill = ragged();
  const std::string of_mask = "must not be given: the descriptor's mask is causal";
  check_bad_prefills(
      {
          {"mask", of_mask,
           [](PrefillCall& c) {
             c.mask = bytes({1, 1, 1, 9});
           }},
          {"prefix_lens", of_mask, [](PrefillCall& c) { c.prefix_lens = integers({2}); }},
          {"q_segments", of_mask, [](PrefillCall& c) { c.q_segments = integers({50}); }},
          {"kv_segments", of_mask, [](PrefillCall& c) { c.kv_segments = integers({70}); }},
          {"alibi_slopes", "the descriptor's score_modifier is none",
           [](PrefillCall& c) { c.alibi_slopes = fp32_numbers({8}); }},
          {"softcap", "must be 0: the descriptor's score_modifier is none",
           [](PrefillCall& c) { c.softcap = 50.0F; }},
          {"block_mask", "the descriptor's sparsity is none",
           [](PrefillCall& c) {
             c.block_mask = bytes({1, 1, 1, 2});
           }},
          {"sinks", "must not be given: the descriptor has no sinks",
           [](PrefillCall& c) { c.sinks = fp32_numbers({8}); }},
      },
      prefill);
}

TEST_CASE("a materialized mask of a prefill is given in its type, full or broadcast") {
  PrefillCase prefill = dense(KvLayoutTag::bshd);
  prefill.descriptor.mask = MaskKind::materialized_additive;
  prefill.descriptor.dtype_mask = DataType::fp32;
  for (const auto& shape : {std::array{2, 8, 30}, std::array{1, 1, 1}, std::array{2, 1, 31}}) {
    prefill.call.mask = fp32_numbers({shape[0], shape[1], shape[2], 40});
    CHECK(violations_of(prefill).empty());
  }
  check_bad_prefills(
      {
          {"mask", "must be given", [](PrefillCall& c) { c.mask = {}; }},
          {"mask", "must be fp32", [](PrefillCall& c) { c.mask.dtype = DataType::bf16; }},
          {"mask", "must have shape [2, 1, any, any]", [](PrefillCall& c) { c.mask.shape[0] = 3; }},
          {"mask", "must have shape [2, 8, any, any]", [](PrefillCall& c) { c.mask.shape[1] = 2; }},
          {"mask", "must cover 1 or 30 queries", [](PrefillCall& c) { c.mask.shape[2] = 29; }},
          {"mask", "must not be empty in dimension 3", [](PrefillCall& c) { c.mask.shape[3] = 0; }},
          {"mask", "at least 0", [](PrefillCall& c) { c.mask.strides[2] = -40; }},
          {"mask", "4-byte aligned", [](PrefillCall& c) { c.mask.data = misaligned(2); }},
      },
      prefill);
}

TEST_CASE("packed bits of a prefill lie in consecutive bytes") {
  PrefillCase prefill = ragged();
  for (const MaskKind mask : {MaskKind::materialized_bits, MaskKind::tree}) {
    prefill.descriptor.mask = mask;
    prefill.call.mask = bytes({2, 1, 30, 5});
    check_bad_prefills(
        {
            {"mask", "must be uint8", [](PrefillCall& c) { c.mask.dtype = DataType::int32; }},
            {"mask", "stride 1 in its last dimension, packed bits",
             [](PrefillCall& c) { c.mask.strides[3] = 2; }},
        },
        prefill);
  }
}

TEST_CASE("each bad input of a prefix-LM or document mask is named with its rule") {
  PrefillCase prefix = ragged();
  prefix.descriptor.mask = MaskKind::prefix_lm;
  prefix.call.prefix_lens = integers({2});
  check_bad_prefills(
      {
          {"prefix_lens", "must be given", [](PrefillCall& c) { c.prefix_lens = {}; }},
          {"prefix_lens", "must have shape [2]",
           [](PrefillCall& c) { c.prefix_lens.shape[0] = 3; }},
          {"prefix_lens", "must be int32",
           [](PrefillCall& c) { c.prefix_lens.dtype = DataType::fp32; }},
      },
      prefix);
  const std::vector<BadCall> both = {
      {"q_segments", "must be given", [](PrefillCall& c) { c.q_segments = {}; }},
      {"kv_segments", "must be given", [](PrefillCall& c) { c.kv_segments = {}; }},
      {"kv_segments", "must be int32",
       [](PrefillCall& c) { c.kv_segments.dtype = DataType::uint8; }},
  };
  PrefillCase rows = ragged();
  rows.descriptor.mask = MaskKind::document;
  rows.call.q_segments = integers({50});
  rows.call.kv_segments = integers({70});
  check_bad_prefills(both, rows);
  check_bad_prefills(
      {
          {"q_segments", "must have shape [50]", [](PrefillCall& c) { c.q_segments.shape[0] = 9; }},
          {"kv_segments", "must have shape [70]",
           [](PrefillCall& c) { c.kv_segments.shape[0] = 71; }},
      },
      rows);
}

TEST_CASE("the segments of dense queries and of paged keys have a row for each request") {
  PrefillCase rows = dense(KvLayoutTag::bhsd);
  rows.descriptor.mask = MaskKind::document;
  rows.call.q_segments = integers({2, 30});
  rows.call.kv_segments = integers({2, 40});
  rows.call.kv_segments.strides[0] = 64;
  check_bad_prefills(
      {
          {"q_segments", "must have shape [2, 30]",
           [](PrefillCall& c) { c.q_segments.shape[1] = 31; }},
          {"q_segments", "multiples of 30", [](PrefillCall& c) { c.q_segments.strides[0] = 32; }},
          {"kv_segments", "must have shape [2, 40]",
           [](PrefillCall& c) { c.kv_segments.shape[1] = 39; }},
      },
      rows);
  PrefillCase pages = paged(KvLayoutTag::nhd);
  pages.descriptor.mask = MaskKind::document;
  pages.call.q_segments = integers({50});
  pages.call.kv_segments = integers({2, 75});
  check_bad_prefills(
      {
          {"kv_segments", "must have shape [2, any]",
           [](PrefillCall& c) { c.kv_segments.rank = 1; }},
      },
      pages);
}

TEST_CASE("each bad input of a score modifier or of sinks is named with its rule") {
  PrefillCase alibi = ragged();
  alibi.descriptor.score_modifier = ScoreModifier::alibi;
  alibi.descriptor.has_sinks = true;
  alibi.call.alibi_slopes = alibi.call.sinks = fp32_numbers({8});
  check_bad_prefills(
      {
          {"alibi_slopes", "must be given", [](PrefillCall& c) { c.alibi_slopes = {}; }},
          {"alibi_slopes", "must have shape [8]",
           [](PrefillCall& c) { c.alibi_slopes.shape[0] = 2; }},
          {"alibi_slopes", "must be fp32",
           [](PrefillCall& c) { c.alibi_slopes.dtype = DataType::bf16; }},
          {"softcap", "must be 0", [](PrefillCall& c) { c.softcap = 1.0F; }},
          {"sinks", "must be given", [](PrefillCall& c) { c.sinks = {}; }},
          {"sinks", "must have shape [8]", [](PrefillCall& c) { c.sinks.shape[0] = 2; }},
          {"sinks", "stride 1", [](PrefillCall& c) { c.sinks.strides[0] = 2; }},
      },
      alibi);
  PrefillCase softcap = ragged();
  softcap.descriptor.score_modifier = ScoreModifier::softcap;
  softcap.call.softcap = 50.0F;
  std::vector<BadCall> bad_calls;
  for (const float cap : {0.0F, -50.0F, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    bad_calls.push_back(
        {"softcap", "must be positive and finite", [cap](PrefillCall& c) { c.softcap = cap; }});
  }
  check_bad_prefills(bad_calls, softcap);
}

TEST_CASE("each bad block layout of a prefill is named with its rule") {
  PrefillCase prefill = ragged();
  prefill.descriptor.sparsity = Sparsity::block;
  prefill.descriptor.sparsity_block = 64;
  for (const int heads : {1, 2, 8}) {
    prefill.call.block_mask = bytes({1, heads, 1, 2});
    CHECK(violations_of(prefill).empty());
  }
  prefill.call.block_mask = bytes({2, 8, 3, 4});
  check_bad_prefills(
      {
          {"block_mask", "must be given", [](PrefillCall& c) { c.block_mask = {}; }},
          {"block_mask", "must be uint8",
           [](PrefillCall& c) { c.block_mask.dtype = DataType::int32; }},
          {"block_mask", "must have shape [2, 8, any, any]",
           [](PrefillCall& c) { c.block_mask.shape[0] = 3; }},
          {"block_mask", "must have shape [2, 8, any, any]",
           [](PrefillCall& c) { c.block_mask.shape[1] = 4; }},
          {"block_mask", "at least 0", [](PrefillCall& c) { c.block_mask.strides[3] = -1; }},
          {"block_columns", "block_rows are not given",
           [](PrefillCall& c) { c.block_columns = integers({5}); }},
          {"block_mask", "block_rows say what is looked at",
           [](PrefillCall& c) {
             c.block_rows = integers({2, 8, 4});
             c.block_columns = integers({5});
           }},
      },
      prefill);
  prefill.call.block_mask = {};
  prefill.call.block_rows = integers({2, 8, 4});
  prefill.call.block_columns = integers({5});
  check_bad_prefills(
      {
          {"block_rows", "must be int32",
           [](PrefillCall& c) { c.block_rows.dtype = DataType::int64; }},
          {"block_rows", "must have shape [2, 8, any]",
           [](PrefillCall& c) { c.block_rows.shape[0] = 3; }},
          {"block_rows", "must not be empty in dimension 2",
           [](PrefillCall& c) {
             c.block_rows = integers({2, 8, 0});
           }},
          {"block_columns", "must be given", [](PrefillCall& c) { c.block_columns = {}; }},
          {"block_columns", "must be int32",
           [](PrefillCall& c) { c.block_columns.dtype = DataType::int64; }},
      },
      prefill);
}

}  // namespace
}  // namespace attnjit
