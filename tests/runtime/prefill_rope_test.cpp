// The prefill whose rope columns of k lie in a cache: its checks, the kernel's arguments, an fp8
// rope and its scales, a rope of q apart. None of it needs a GPU.
#include "scaled_prefill.hpp"

namespace attnjit {
namespace {

using namespace test;
using namespace kernel_interface;

constexpr DataType e4m3 = DataType::fp8_e4m3;
constexpr KvLayoutTag rope_tags[] = {KvLayoutTag::nhd, KvLayoutTag::hnd, KvLayoutTag::bshd,
                                     KvLayoutTag::bhsd};

// Behind 32 of the 96 columns of each row.
const void* rope_of_cache() {
  return static_cast<char*>(fake_pointer(9)) + 64;
}

TEST_CASE("a legal prefill of rope columns passes in every layout, with what is optional") {
  for (const KvLayoutTag tag : rope_tags) {
    PrefillCase prefill = roped(tag);
    CHECK(violations_of(prefill).empty());
    prefill.call.lse = {};
    prefill.call.query_positions = prefill.call.key_positions = integers({2});
    CHECK(violations_of(prefill).empty());
  }
}

TEST_CASE("each bad argument of a prefill with paged rope columns is named with its rule") {
  check_bad_prefills(
      {
          {"k_rope", "must be given", [](PrefillCall& c) { c.k_rope = {}; }},
          {"k_rope", "must be bf16", [](PrefillCall& c) { c.k_rope.dtype = DataType::fp8_e4m3; }},
          {"k_rope", "must have shape [any, 16, 1, any]",
           [](PrefillCall& c) { c.k_rope.shape[1] = 64; }},
          {"k_rope", "must have shape [any, 16, 1, any]",
           [](PrefillCall& c) { c.k_rope.shape[2] = 2; }},
          {"k_rope", "must have shape [any, 16, 1, any]",
           [](PrefillCall& c) {
             c.k_rope = elements({9, 16, 96});
           }},
          {"k_rope", "must not be empty", [](PrefillCall& c) { c.k_rope.shape[0] = 0; }},
          {"k_rope", "must have at least 64 columns",
           [](PrefillCall& c) { c.k_rope.shape[3] = 56; }},
          {"k_rope", "a multiple of 8", [](PrefillCall& c) { c.k_rope.shape[3] = 92; }},
          {"k_rope", "multiples of 8", [](PrefillCall& c) { c.k_rope.strides[1] = 100; }},
          {"k_rope", "stride 1", [](PrefillCall& c) { c.k_rope.strides[3] = 2; }},
          {"k_rope", "16-byte aligned",
           [](PrefillCall& c) { c.k_rope.data = reinterpret_cast<void*>(0x1008); }},
          {"k", "must have shape [any, 2, 64]",
           [](PrefillCall& c) {
             c.k = elements({70, 2, 128});
           }},
          {"v", "must have shape [70, 2, 64]", [](PrefillCall& c) { c.v.shape[0] = 69; }},
          {"block_table", "must be given", [](PrefillCall& c) { c.block_table = {}; }},
          {"block_table", "must have shape [2, any]",
           [](PrefillCall& c) { c.block_table.shape[0] = 3; }},
          {"block_table", "must be int32",
           [](PrefillCall& c) { c.block_table.dtype = DataType::fp32; }},
          {"kv_offsets", "must be given", [](PrefillCall& c) { c.kv_offsets = {}; }},
          {"kv_offsets", "must have shape [3]", [](PrefillCall& c) { c.kv_offsets.shape[0] = 2; }},
          {"query_positions", "must be given: k_rope is paged",
           [](PrefillCall& c) { c.query_positions = {}; }},
          {"query_positions", "must have shape [2]",
           [](PrefillCall& c) { c.query_positions = integers({3}); }},
          {"key_positions", "must have shape [2]",
           [](PrefillCall& c) { c.key_positions = integers({3}); }},
      },
      roped(KvLayoutTag::nhd));
  check_bad_prefills({{"k_rope", "must have shape [any, 1, 16, any]",
                       [](PrefillCall& c) {
                         c.k_rope = elements({9, 16, 1, 96});
                       }}},
                     roped(KvLayoutTag::hnd));
}

TEST_CASE("each bad argument of a prefill with dense rope columns is named with its rule") {
  check_bad_prefills(
      {
          {"k_rope", "must be given", [](PrefillCall& c) { c.k_rope = {}; }},
          {"k_rope", "must have shape [2, any, 1, any]",
           [](PrefillCall& c) { c.k_rope.shape[0] = 3; }},
          {"k_rope", "must not be empty in dimension 1",
           [](PrefillCall& c) { c.k_rope.shape[1] = 0; }},
          {"k_rope", "must have at least 64 columns",
           [](PrefillCall& c) { c.k_rope.shape[3] = 32; }},
          {"block_table", "must not be given: the keys are not paged",
           [](PrefillCall& c) {
             c.block_table = integers({2, 5});
           }},
          {"kv_offsets", "must be given", [](PrefillCall& c) { c.kv_offsets = {}; }},
      },
      roped(KvLayoutTag::bshd));
  check_bad_prefills({{"k_rope", "must have shape [2, 1, any, any]",
                       [](PrefillCall& c) { c.k_rope.shape[1] = 40; }},
                      {"k_rope", "must not be empty in dimension 2",
                       [](PrefillCall& c) { c.k_rope.shape[2] = 0; }}},
                     roped(KvLayoutTag::bhsd));
}

TEST_CASE("rope columns are refused where k has all columns") {
  for (const PrefillCase& whole : {ragged(), dense(KvLayoutTag::bshd), paged(KvLayoutTag::nhd)}) {
    check_bad_prefills({{"k_rope", "must not be given: k has all columns",
                         [](PrefillCall& c) {
                           c.k_rope = elements({9, 16, 1, 64});
                         }}},
                       whole);
    CHECK(arguments_of(whole).k_rope == nullptr);
    CHECK(arguments_of(whole).rope_extent == 0);
  }
}

TEST_CASE("paged rope columns are found by the block table, beside ragged keys") {
  PrefillCase prefill = roped(KvLayoutTag::nhd);
  prefill.call.block_table.strides[0] = 7;
  prefill.call.key_positions = integers({2}, 12);
  PrefillArguments arguments = arguments_of(prefill);
  CHECK(arguments.k_rope == rope_of_cache());
  CHECK(strides_of(arguments.rope_strides) == Strides{0, 1536, 0, 96});
  CHECK(arguments.rope_extent == 5 * 16);
  CHECK(arguments.k == fake_pointer(6));
  CHECK(arguments.v == fake_pointer(7));
  CHECK(strides_of(arguments.k_strides) == Strides{0, 0, 64, 128});
  CHECK(strides_of(arguments.v_strides) == Strides{0, 0, 64, 128});
  CHECK(arguments.keys.offsets == fake_pointer(8));
  CHECK(arguments.keys.lengths == nullptr);
  CHECK(arguments.block_table == fake_pointer(10));
  CHECK(arguments.block_table_stride == 7);
  CHECK(arguments.query_positions == fake_pointer(11));
  CHECK(arguments.key_positions == fake_pointer(12));

  prefill = roped(KvLayoutTag::hnd);
  prefill.call.k_rope.strides[0] = 4096;  // layers between a layer's pages
  CHECK(strides_of(arguments_of(prefill).rope_strides) == Strides{0, 4096, 0, 96});
}

TEST_CASE("dense rope columns are found by the request, and tell where the last query stands") {
  for (const KvLayoutTag tag : {KvLayoutTag::bshd, KvLayoutTag::bhsd}) {
    PrefillCase prefill = roped(tag);
    PrefillArguments arguments = arguments_of(prefill);
    CHECK(arguments.k_rope == rope_of_cache());
    CHECK(strides_of(arguments.rope_strides) == Strides{3840, 0, 0, 96});
    CHECK(arguments.rope_extent == 40);
    CHECK(arguments.query_positions == nullptr);
    CHECK(arguments.keys.offsets == fake_pointer(8));
  }
  PrefillCase narrow = roped(KvLayoutTag::bshd);
  narrow.call.k_rope = elements({2, 40, 1, 64}, 9);
  CHECK(arguments_of(narrow).k_rope == fake_pointer(9));
}

// Of an fp8 rope of 64 columns, the last of 96.
PrefillCase with_fp8_rope(KvLayoutTag tag, ScaleGrain grain, int scale_block = 0) {
  PrefillCase prefill = roped(tag);
  prefill.descriptor.dtype_rope = prefill.call.k_rope.dtype = e4m3;
  prefill.descriptor.scales_rope = grain;
  prefill.descriptor.scale_block = scale_block;
  return prefill;
}

void check_rope(PrefillCase prefill, const Shape& shape, const Strides& strides, int first) {
  prefill.call.rope_scales = scales_of(shape, 23);
  const PrefillArguments arguments = arguments_of(prefill);
  CHECK(arguments.rope_scales.scales == static_cast<const float*>(fake_pointer(23)) + first);
  CHECK(strides_of(arguments.rope_scales.strides) == strides);
  CHECK(arguments.k_rope == static_cast<char*>(fake_pointer(9)) + 32);  // columns before it
}

TEST_CASE("scales of the rope lie as its cache does, those of blocks from the rope's first on") {
  constexpr ScaleGrain block = ScaleGrain::per_block;
  constexpr ScaleGrain token = ScaleGrain::per_token;
  check_rope(with_fp8_rope(KvLayoutTag::nhd, block, 32), {9, 16, 1, 3}, {0, 48, 0, 3}, 1);
  check_rope(with_fp8_rope(KvLayoutTag::hnd, block, 32), {9, 1, 16, 3}, {0, 48, 0, 3}, 1);
  check_rope(with_fp8_rope(KvLayoutTag::bshd, block, 16), {2, 40, 1, 6}, {240, 0, 0, 6}, 2);
  check_rope(with_fp8_rope(KvLayoutTag::bhsd, block, 8), {2, 1, 40, 12}, {480, 0, 0, 12}, 4);
  check_rope(with_fp8_rope(KvLayoutTag::nhd, token), {9, 16, 1}, {0, 16, 0, 1}, 0);
  check_rope(with_fp8_rope(KvLayoutTag::bhsd, token), {2, 1, 40}, {40, 0, 0, 1}, 0);
  check_rope(with_fp8_rope(KvLayoutTag::nhd, ScaleGrain::per_head), {2, 1}, {1, 0, 0, 0}, 0);
  check_rope(with_fp8_rope(KvLayoutTag::bshd, ScaleGrain::per_head), {1, 1}, {}, 0);
  check_rope(with_fp8_rope(KvLayoutTag::nhd, ScaleGrain::per_tensor), {1}, {}, 0);
}

TEST_CASE("each bad tensor of the rope's scales is named with its rule") {
  PrefillCase prefill = with_fp8_rope(KvLayoutTag::nhd, ScaleGrain::per_block, 32);
  prefill.call.rope_scales = scales_of({9, 16, 1, 3}, 23);
  check_bad_prefills(
      {
          {"rope_scales", "must be fp32",
           [](PrefillCall& c) { c.rope_scales.dtype = DataType::fp16; }},
          {"rope_scales", "must have shape [9, 16, 1, 3]: scales are per_block",
           [](PrefillCall& c) {
             c.rope_scales = scales_of({9, 16, 1, 2}, 23);
           }},
          {"rope_scales", "stride 1 in its last dimension",
           [](PrefillCall& c) { c.rope_scales.strides[3] = 2; }},
          {"k_rope", "must be fp8_e4m3", [](PrefillCall& c) { c.k_rope.dtype = DataType::bf16; }},
      },
      prefill);
  // The rope begins 32 columns into a block.
  prefill = with_fp8_rope(KvLayoutTag::nhd, ScaleGrain::per_block, 64);
  check_bad_prefills({{"rope_scales", "must have a block that begins with the rope, 32 columns",
                       [](PrefillCall& c) {
                         c.rope_scales = scales_of({9, 16, 1, 2}, 23);
                       }}},
                     prefill);
  check_bad_prefills({{"rope_scales", "must have shape [2 or 1, 1]: scales are per_head",
                       [](PrefillCall& c) {
                         c.rope_scales = scales_of({2, 2}, 23);
                       }}},
                     with_fp8_rope(KvLayoutTag::bshd, ScaleGrain::per_head));
}

TEST_CASE("the rope of q is a tensor of its own where the descriptor says so, and only there") {
  PrefillCase prefill = roped(KvLayoutTag::nhd);
  prefill.descriptor.q_rope_apart = true;
  prefill.call.q = elements({50, 8, 64}, 2);
  prefill.call.q_rope = elements({50, 8, 64}, 25);
  prefill.call.q_rope.strides[0] = 1024;
  const PrefillArguments arguments = arguments_of(prefill);
  CHECK(arguments.q_rope == fake_pointer(25));
  CHECK(strides_of(arguments.q_rope_strides) == RowStrides{0, 1024, 64});
  CHECK(strides_of(arguments.q_strides) == RowStrides{0, 512, 64});
  check_bad_prefills(
      {
          {"q_rope", "must be given", [](PrefillCall& c) { c.q_rope = {}; }},
          {"q_rope", "must be bf16", [](PrefillCall& c) { c.q_rope.dtype = e4m3; }},
          {"q_rope", "must have shape [50, 8, 64]", [](PrefillCall& c) { c.q_rope.shape[0] = 49; }},
          {"q_rope", "multiples of 8", [](PrefillCall& c) { c.q_rope.strides[0] = 1020; }},
          {"q", "must have shape [any, 8, 64]", [](PrefillCall& c) { c.q.shape[2] = 128; }},
      },
      prefill);
  PrefillCase dense_queries = prefill;
  dense_queries.call.q_offsets = {};
  dense_queries.call.q = elements({2, 30, 8, 64}, 2);
  dense_queries.call.q_rope = elements({2, 30, 8, 64}, 25);
  dense_queries.call.out = elements({2, 30, 8, 64}, 4);
  dense_queries.call.lse = {};
  CHECK(strides_of(arguments_of(dense_queries).q_rope_strides) == RowStrides{15360, 512, 64});
  check_bad_prefills({{"q_rope", "must have shape [2, 30, 8, 64]",
                       [](PrefillCall& c) { c.q_rope.shape[1] = 29; }}},
                     dense_queries);
  for (const PrefillCase& whole : {roped(KvLayoutTag::nhd), ragged()}) {
    check_bad_prefills({{"q_rope", "must not be given: q has all columns",
                         [](PrefillCall& c) {
                           c.q_rope = elements({50, 8, 64});
                         }}},
                       whole);
  }
}

}  // namespace
}  // namespace attnjit
