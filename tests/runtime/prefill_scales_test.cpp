// The scales of a prefill's fp8 tensors: the shapes that they may have, and where the kernel finds
// them. None of it needs a GPU.
#include "prefill_scales.hpp"

#include "scaled_prefill.hpp"

namespace attnjit {
namespace {

using namespace test;
using namespace kernel_interface;

constexpr DataType e4m3 = DataType::fp8_e4m3;
constexpr ScaleGrain grains[] = {ScaleGrain::none, ScaleGrain::per_tensor, ScaleGrain::per_head,
                                 ScaleGrain::per_token, ScaleGrain::per_block};

// Everything but the output in e4m3; blocks of 48 columns: 3 of q and k, 2 of v.
PrefillCase in_fp8(PrefillCase prefill, ScaleGrain grain) {
  AttentionDescriptor& descriptor = prefill.descriptor;
  descriptor.dtype_q = descriptor.dtype_kv = e4m3;
  descriptor.scales_q = descriptor.scales_kv = grain;
  descriptor.scale_block = grain == ScaleGrain::per_block ? 48 : 0;
  prefill.call.q.dtype = prefill.call.k.dtype = prefill.call.v.dtype = e4m3;
  return prefill;
}

// Scales of k, and those of v that go with them.
struct KeyCase {
  Shape k;
  Shape v;
  Strides k_strides;
  Strides v_strides;
};

void check_keys(const PrefillCase& layout, ScaleGrain grain, const std::vector<KeyCase>& cases) {
  for (const KeyCase& each : cases) {
    PrefillCase prefill = in_fp8(layout, grain);
    prefill.call.k_scales = scales_of(each.k, 20);
    prefill.call.v_scales = scales_of(each.v, 21);
    const PrefillArguments arguments = arguments_of(prefill);
    CHECK(arguments.k_scales.scales == fake_pointer(20));
    CHECK(arguments.v_scales.scales == fake_pointer(21));
    CHECK(strides_of(arguments.k_scales.strides) == each.k_strides);
    CHECK(strides_of(arguments.v_scales.strides) == each.v_strides);
  }
}

TEST_CASE("scales per token of keys and values lie as these do, for each head or for all") {
  constexpr ScaleGrain token = ScaleGrain::per_token;
  check_keys(ragged(), token,
             {{{70, 2}, {70, 1}, {0, 0, 1, 2}, {0, 0, 0, 1}},
              {{70, 1}, {70, 2}, {0, 0, 0, 1}, {0, 0, 1, 2}}});
  check_keys(dense(KvLayoutTag::bshd), token,
             {{{2, 40, 2}, {2, 40, 1}, {80, 0, 1, 2}, {40, 0, 0, 1}}});
  check_keys(dense(KvLayoutTag::bhsd), token,
             {{{2, 2, 40}, {2, 1, 40}, {80, 0, 40, 1}, {40, 0, 0, 1}}});
  check_keys(paged(KvLayoutTag::nhd), token,
             {{{9, 16, 2}, {9, 16, 1}, {0, 32, 1, 2}, {0, 16, 0, 1}}});
  check_keys(paged(KvLayoutTag::hnd), token,
             {{{2, 9, 2, 16}, {2, 9, 1, 16}, {288, 32, 16, 1}, {144, 16, 0, 1}}});
}

TEST_CASE("scales per block of columns lie as keys and values do, for each head or for all") {
  constexpr ScaleGrain block = ScaleGrain::per_block;
  check_keys(ragged(), block, {{{70, 2, 3}, {70, 1, 2}, {0, 0, 3, 6}, {0, 0, 0, 2}}});
  check_keys(dense(KvLayoutTag::bshd), block,
             {{{2, 40, 1, 3}, {2, 40, 2, 2}, {120, 0, 0, 3}, {160, 0, 2, 4}}});
  check_keys(dense(KvLayoutTag::bhsd), block,
             {{{2, 2, 40, 3}, {2, 1, 40, 2}, {240, 0, 120, 3}, {80, 0, 0, 2}}});
  check_keys(paged(KvLayoutTag::nhd), block,
             {{{9, 16, 2, 3}, {9, 16, 1, 2}, {0, 96, 3, 6}, {0, 32, 0, 2}}});
  check_keys(paged(KvLayoutTag::hnd), block,
             {{{2, 9, 2, 16, 3}, {2, 9, 1, 16, 2}, {864, 96, 48, 3}, {288, 32, 0, 2}}});
}

TEST_CASE("one scale for all, or one for a request and kv head, is found without a token") {
  for (const PrefillCase& layout : {ragged(), dense(KvLayoutTag::bshd), dense(KvLayoutTag::bhsd),
                                    paged(KvLayoutTag::nhd), paged(KvLayoutTag::hnd)}) {
    check_keys(layout, ScaleGrain::per_tensor, {{{1}, {1}, {}, {}}});
    check_keys(layout, ScaleGrain::per_head,
               {{{2, 2}, {1, 2}, {2, 0, 1, 0}, {0, 0, 1, 0}}, {{2, 1}, {1, 1}, {1, 0, 0, 0}, {}}});
  }
}

TEST_CASE("scales may have any strides, as those of a slice have") {
  PrefillCase prefill = in_fp8(paged(KvLayoutTag::nhd), ScaleGrain::per_token);
  prefill.call.k_scales = scales_of({9, 16, 2}, 20);
  prefill.call.k_scales.strides = {1000, 4, 2};
  CHECK(strides_of(arguments_of(prefill).k_scales.strides) == Strides{0, 1000, 2, 4});
}

struct QueryCase {
  ScaleGrain grain;
  Shape shape;
  RowStrides strides;
};

void check_queries(const PrefillCase& layout, const std::vector<QueryCase>& cases) {
  for (const QueryCase& each : cases) {
    PrefillCase prefill = in_fp8(layout, each.grain);
    prefill.call.q_scales = scales_of(each.shape, 22);
    const PrefillArguments arguments = arguments_of(prefill);
    INFO(to_string(each.grain));
    CHECK(arguments.q_scales.scales == fake_pointer(22));
    CHECK(strides_of(arguments.q_scales.strides) == each.strides);
  }
}

TEST_CASE("scales of queries lie as these do, or one for a request and kv head") {
  check_queries(ragged(), {{ScaleGrain::per_tensor, {1}, {}},
                           {ScaleGrain::per_head, {2, 2}, {2, 0, 1}},
                           {ScaleGrain::per_head, {1, 2}, {0, 0, 1}},
                           {ScaleGrain::per_head, {2, 1}, {1, 0, 0}},
                           {ScaleGrain::per_token, {50, 8}, {0, 8, 1}},
                           {ScaleGrain::per_token, {50, 1}, {0, 1, 0}},
                           {ScaleGrain::per_block, {50, 8, 3}, {0, 24, 3}},
                           {ScaleGrain::per_block, {50, 1, 3}, {0, 3, 0}}});
  check_queries(dense(KvLayoutTag::bhsd), {{ScaleGrain::per_head, {2, 2}, {2, 0, 1}},
                                           {ScaleGrain::per_token, {2, 30, 8}, {240, 8, 1}},
                                           {ScaleGrain::per_token, {2, 30, 1}, {30, 1, 0}},
                                           {ScaleGrain::per_block, {2, 30, 8, 3}, {720, 24, 3}}});
}

TEST_CASE("a batch of one request has scales of one") {
  PrefillCase prefill = in_fp8(ragged(), ScaleGrain::per_head);
  prefill.call.q_offsets = prefill.call.kv_offsets = integers({2});
  prefill.call.k_scales = scales_of({1, 2}, 20);
  CHECK(strides_of(arguments_of(prefill).k_scales.strides) == Strides{0, 0, 1, 0});
  check_bad_prefills({{"k_scales", "must have shape [1, 2 or 1]",
                       [](PrefillCall& c) {
                         c.k_scales = scales_of({2, 2}, 20);
                       }}},
                     prefill);
}

TEST_CASE("scales that are not given are 1, whatever their grain") {
  for (const ScaleGrain grain : grains) {
    PrefillCase prefill = in_fp8(paged(KvLayoutTag::hnd), grain);
    prefill.descriptor.dtype_out = prefill.call.out.dtype = e4m3;
    prefill.descriptor.scales_out = ScaleGrain::per_tensor;
    const PrefillArguments arguments = arguments_of(prefill);
    CHECK(arguments.q_scales.scales == nullptr);
    CHECK(arguments.k_scales.scales == nullptr);
    CHECK(arguments.v_scales.scales == nullptr);
    CHECK(arguments.rope_scales.scales == nullptr);
    CHECK(arguments.out_scale == nullptr);
  }
}

TEST_CASE("each bad tensor of scales per token is named with its rule") {
  PrefillCase tokens = in_fp8(ragged(), ScaleGrain::per_token);
  tokens.call.q_scales = scales_of({50, 8}, 22);
  tokens.call.k_scales = scales_of({70, 2}, 20);
  tokens.call.v_scales = scales_of({70, 2}, 21);
  check_bad_prefills(
      {
          {"q_scales", "must be fp32", [](PrefillCall& c) { c.q_scales.dtype = DataType::bf16; }},
          {"q_scales", "must have shape [50, 8 or 1]: scales are per_token",
           [](PrefillCall& c) {
             c.q_scales = scales_of({50, 2}, 22);
           }},
          {"q_scales", "must have shape [50, 8 or 1]",
           [](PrefillCall& c) {
             c.q_scales = scales_of({1, 8}, 22);
           }},
          {"k_scales", "must have shape [70, 2 or 1]",
           [](PrefillCall& c) {
             c.k_scales = scales_of({69, 2}, 20);
           }},
          {"k_scales", "must have shape [70, 2 or 1]",
           [](PrefillCall& c) { c.k_scales = scales_of({70}, 20); }},
          {"k_scales", "must have shape [70, 2 or 1]",
           [](PrefillCall& c) {
             c.k_scales = scales_of({70, 2, 1}, 20);
           }},
          {"k_scales", "at least 0", [](PrefillCall& c) { c.k_scales.strides[0] = -2; }},
          {"v_scales", "must have shape [70, 2 or 1]",
           [](PrefillCall& c) { c.v_scales = scales_of({1}, 21); }},
          {"v_scales", "4-byte aligned",
           [](PrefillCall& c) { c.v_scales.data = reinterpret_cast<void*>(0x1002); }},
          {"rope_scales", "must not be given: the descriptor's scales_rope is none",
           [](PrefillCall& c) { c.rope_scales = scales_of({1}, 23); }},
          {"out_scale", "must not be given: the descriptor's scales_out is none",
           [](PrefillCall& c) { c.out_scale = scales_of({1}, 24); }},
      },
      tokens);
}

TEST_CASE("each bad tensor of scales of another grain is named with its rule") {
  PrefillCase blocks = in_fp8(paged(KvLayoutTag::nhd), ScaleGrain::per_block);
  blocks.call.k_scales = scales_of({9, 16, 2, 3}, 20);
  check_bad_prefills(
      {
          {"k_scales", "must have shape [9, 16, 2 or 1, 3]: scales are per_block",
           [](PrefillCall& c) {
             c.k_scales = scales_of({9, 16, 2, 2}, 20);
           }},
          {"k_scales", "must have shape [9, 16, 2 or 1, 3]",
           [](PrefillCall& c) {
             c.k_scales = scales_of({9, 16, 2}, 20);
           }},
          {"k_scales", "stride 1 in its last dimension",
           [](PrefillCall& c) { c.k_scales.strides[3] = 2; }},
          {"v_scales", "must have shape [9, 16, 2 or 1, 2]",
           [](PrefillCall& c) {
             c.v_scales = scales_of({9, 16, 2, 3}, 21);
           }},
      },
      blocks);
  check_bad_prefills({{"k_scales", "must have shape [1]: scales are per_tensor",
                       [](PrefillCall& c) { c.k_scales = scales_of({2}, 20); }}},
                     in_fp8(dense(KvLayoutTag::bhsd), ScaleGrain::per_tensor));
  check_bad_prefills({{"q_scales", "must have shape [2 or 1, 2 or 1]: scales are per_head",
                       [](PrefillCall& c) {
                         c.q_scales = scales_of({2, 8}, 22);
                       }}},
                     in_fp8(ragged(), ScaleGrain::per_head));
}

TEST_CASE("scales of a tensor that is not fp8, or has none, must not be given") {
  for (const PrefillCase& prefill : {ragged(), in_fp8(ragged(), ScaleGrain::none)}) {
    check_bad_prefills(
        {
            {"q_scales", "must not be given: the descriptor's scales_q is none",
             [](PrefillCall& c) { c.q_scales = scales_of({1}, 22); }},
            {"k_scales", "must not be given: the descriptor's scales_kv is none",
             [](PrefillCall& c) { c.k_scales = scales_of({1}, 20); }},
            {"v_scales", "must not be given: the descriptor's scales_kv is none",
             [](PrefillCall& c) { c.v_scales = scales_of({1}, 21); }},
        },
        prefill);
  }
}

TEST_CASE("values that are a prefix of k have the scales of k") {
  PrefillCase prefill = in_fp8(paged(KvLayoutTag::nhd), ScaleGrain::per_token);
  prefill.descriptor.value_source = ValueSource::prefix_of_k;
  prefill.call.v = {};
  check_bad_prefills({{"v_scales", "must not be given: v is a prefix of k",
                       [](PrefillCall& c) {
                         c.v_scales = scales_of({9, 16, 1}, 21);
                       }}},
                     prefill);
}

TEST_CASE("an fp8 output has one scale, or none") {
  PrefillCase prefill = ragged();
  prefill.descriptor.dtype_out = prefill.call.out.dtype = e4m3;
  prefill.descriptor.scales_out = ScaleGrain::per_tensor;
  prefill.call.out_scale = scales_of({1}, 24);
  CHECK(arguments_of(prefill).out_scale == fake_pointer(24));
  check_bad_prefills(
      {{"out_scale", "must have shape [1]",
        [](PrefillCall& c) { c.out_scale = scales_of({8}, 24); }},
       {"out_scale", "must be fp32", [](PrefillCall& c) { c.out_scale.dtype = DataType::bf16; }}},
      prefill);
}

}  // namespace
}  // namespace attnjit
