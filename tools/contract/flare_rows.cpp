// A1 to A20: what is known of Modular's flare_mla_prefill. There is no A19.
#include <string_view>

#include "custom_expressions.hpp"
#include "flare_case.hpp"
#include "flare_fp8_case.hpp"
#include "host_case.hpp"
#include "legal_calls.hpp"
#include "prefill_composition_suite.hpp"
#include "problems.hpp"
#include "reference_case.hpp"
#include "rows.hpp"

namespace attnjit::contract {
namespace {

using Call = FlareMlaPrefillCall;

// Prompts, suffixes of cached ones, a single token, an empty request.
const check::Lengths ragged_requests = {{129, 129}, {64, 300}, {1, 127}, {0, 65}, {63, 64}};

// As many keys of each, as a dense rope asks.
const check::Lengths equal_requests = {{150, 150}, {64, 150}, {1, 150}, {0, 150}};

constexpr DataType bf16 = DataType::bf16;
constexpr DataType e4m3 = DataType::fp8_e4m3;
constexpr FlareMlaPrefillShape deepseek = {.num_heads = 4};
constexpr RopeCacheForm paged = {.page_size = 64, .width = 576};
constexpr RopeCacheForm dense = {.page_size = 0, .width = 576};
constexpr RopeCacheForm dense_rope_only = {.page_size = 0, .width = 64};

FlareMlaPrefillShape with_mask(MaskKind mask) {
  FlareMlaPrefillShape shape = deepseek;
  shape.mask = mask;
  return shape;
}

check::PrefillCase ragged(const FlareMlaPrefillShape& shape = deepseek) {
  return flare_problem(shape, ragged_requests);
}

check::PrefillCase equal_keys() {
  return flare_problem(deepseek, equal_requests);
}

check::PrefillCase windowed(int left, int right) {
  check::PrefillCase prefill_case = ragged(with_mask(MaskKind::sliding_window));
  prefill_case.descriptor.window_left = left;
  prefill_case.descriptor.window_right = right;
  return prefill_case;
}

check::PrefillCase chunked(MaskKind mask) {
  check::PrefillCase prefill_case = ragged(with_mask(mask));
  prefill_case.descriptor.chunk_size = 100;
  return prefill_case;
}

check::PrefillCase in_memory(MaskKind mask, DataType dtype) {
  check::PrefillCase prefill_case = ragged(with_mask(mask));
  prefill_case.descriptor.dtype_mask = dtype;
  prefill_case.mask_extents.heads = check::MaskExtents::Heads::q;
  return prefill_case;
}

check::PrefillCase custom() {
  check::PrefillCase prefill_case = ragged(with_mask(MaskKind::custom));
  prefill_case.descriptor.mask_expression =
      check::custom_mask_expressions[check::custom_mask_dilated];
  return prefill_case;
}

check::PrefillCase under_formula(std::string_view formula) {
  check::PrefillCase prefill_case = ragged();
  prefill_case.descriptor = check::composed(prefill_case.descriptor, formula);
  return prefill_case;
}

FlareMlaPrefillShape with_rope_scales(DataType dtype) {
  return {.num_heads = 4, .dtype = dtype, .scales = FlareScales::rope_blocks};
}

FlareMlaPrefillShape with_types_of(DataType dtype, DataType dtype_rope) {
  return {.num_heads = 4, .dtype = dtype, .dtype_rope = dtype_rope};
}

constexpr FlareMlaPrefillShape with_token_scales = {
    .num_heads = 4, .dtype = e4m3, .scales = FlareScales::per_token};

std::vector<Requirement> overload_rows() {
  return {
      {"A1",
       "Overload 1: the rope columns of k lie in a paged KV cache",
       {flare_case("pages of 64", ragged(), paged),
        flare_case("pages of 1, rope columns alone", ragged(), {.page_size = 1, .width = 64})},
       ""},
      {"A2",
       "Overload 2: the rope columns of k are a dense tensor",
       {flare_case("behind 512 others", equal_keys(), dense),
        flare_case("alone", equal_keys(), dense_rope_only)},
       ""},
      {"A3",
       "Overload 3: the rope columns are e4m3 with fp32 scales per block of 64",
       {flare_fp8_case("pages of 64", with_rope_scales(bf16), ragged_requests, paged),
        flare_fp8_case("pages of 1, rope columns alone", with_rope_scales(bf16), ragged_requests,
                       {.page_size = 1, .width = 64}),
        flare_fp8_case("dense", with_rope_scales(bf16), equal_requests, dense),
        flare_fp8_case("dense, alone, q, k and v in e4m3", with_rope_scales(e4m3), equal_requests,
                       dense_rope_only)},
       ""},
      {"A4",
       "Overload 4: q_nope, k and v are e4m3 with a scale per token, the rope bf16; the output's "
       "type is its own",
       {flare_fp8_case("pages of 64", with_token_scales, ragged_requests, paged),
        flare_fp8_case("pages of 1, rope columns alone", with_token_scales, ragged_requests,
                       {.page_size = 1, .width = 64}),
        flare_fp8_case("dense", with_token_scales, equal_requests, dense)},
       ""},
  };
}

std::vector<Requirement> tensor_rows() {
  return {
      {"A5",
       "Inputs are ragged",
       {flare_case("requests of mixed lengths", ragged()),
        refused_field("without q offsets", "q_offsets",
                      flare_with([](Call& c) { c.valid_length.dtype = DataType::fp32; }))},
       ""},
      {"A6",
       "q is [seq_len, num_heads, q_depth]",
       {flare_case("4 heads of 192", ragged()),
        refused_field("another depth", "q", flare_with([](Call& c) { c.q.shape[2] = 128; }))},
       ""},
      {"A7",
       "k and v are [cache_len, num_heads, depth]",
       {flare_case("4 heads of 128", ragged()),
        refused_field("k of q's depth", "k", flare_with([](Call& c) { c.k.shape[2] = 192; })),
        refused_field("v of other rows", "v", flare_with([](Call& c) { c.v.shape[0] = 127; }))},
       ""},
      {"A8",
       "k_rope is [cache_len, 1, q_depth - depth], from the KV cache",
       {flare_case("the last 64 of 576 columns", ragged()),
        refused_field("too narrow", "k_rope", flare_with([](Call& c) { c.k_rope.shape[3] = 56; })),
        refused_field("two heads", "k_rope", flare_with([](Call& c) { c.k_rope.shape[2] = 2; }))},
       ""},
      {"A9",
       "depth 128 and q_depth 192, as DeepSeek V2 and V3 have, and others",
       {flare_case("192 and 128", ragged()),
        flare_case("96 and 64", ragged({.num_heads = 4, .q_depth = 96, .depth = 64}),
                   {.page_size = 16, .width = 544}),
        refused_descriptor("no rope columns", "head_dim_qk",
                           flare_mla_prefill_descriptor(
                               {.num_heads = 4, .q_depth = 128, .depth = 128, .page_size = 64}))},
       ""},
      {"A10",
       "The missing columns of k are those of the cache, for all heads",
       {flare_case("16 heads, one rope", ragged({.num_heads = 16}))},
       ""},
      {"A11",
       "The output has depth columns, fewer than q",
       {flare_case("128 of 192", ragged()),
        refused_field("192", "out", flare_with([](Call& c) { c.output.shape[2] = 192; }))},
       ""},
  };
}

std::vector<Requirement> mask_cases_row() {
  return {
      {"A15",
       "Any mask functor",
       {flare_case("causal", ragged()), flare_case("null", ragged(with_mask(MaskKind::none))),
        flare_case("sliding window", windowed(40, 0)),
        flare_case("symmetric window", windowed(20, 20)),
        flare_case("chunked", chunked(MaskKind::chunked)),
        flare_case("chunked causal", chunked(MaskKind::chunked_causal)),
        flare_case("bool", in_memory(MaskKind::materialized_bool, DataType::uint8)),
        flare_case("additive", in_memory(MaskKind::materialized_additive, bf16)),
        flare_case("packed bits", in_memory(MaskKind::materialized_bits, DataType::uint8)),
        flare_case("tree", in_memory(MaskKind::tree, DataType::uint8)),
        flare_case("custom", custom()),
        flare_case("and and or of several", under_formula("causal and sliding_window or custom")),
        flare_case("and of one in memory", under_formula("causal and materialized_bool")),
        refused_field("a mask tensor that none asked for", "mask",
                      run_prefill_with(ragged_12_4(),
                                       [](PrefillCall& c) {
                                         c.mask = fake_view(DataType::uint8, {1, 1, 65, 130});
                                       }))},
       ""},
  };
}

std::vector<Requirement> argument_rows() {
  check::PrefillCase scaled = ragged();
  scaled.softmax_scale = 1.352337788608801;
  return {
      {"A12",
       "Requests of a batch have different valid lengths",
       {flare_case("0 to 129 query tokens", ragged()),
        flare_case("one token each",
                   flare_problem(deepseek, {{1, 1}, {1, 64}, {1, 65}, {1, 300}}))},
       ""},
      {"A13",
       "cache_row_offsets says where a request's keys begin",
       {flare_case("mixed lengths", ragged()),
        refused_field("of another batch", "kv_offsets",
                      flare_with([](Call& c) { c.cache_row_offsets.shape[0] = 4; }))},
       ""},
      {"A14",
       "The scale is an fp32 value of the call",
       {flare_case("DeepSeek's", scaled),
        refused_field("infinite", "softmax_scale",
                      flare_with([](Call& c) { c.scale = 1.0F / 0.0F; }))},
       ""},
  };
}

std::vector<Requirement> option_rows() {
  const check::PrefillCase prompts =
      flare_problem(deepseek, {{129, 129}, {64, 300}, {1, 127}, {63, 64}});
  return {
      {"A16",
       "The longest request's query tokens need not be told",
       {flare_case("not told", ragged()),
        holds(
            "the descriptor asks for none",
            [] {
              return flare_mla_prefill_descriptor({.num_heads = 4, .page_size = 64}).max_seqlen_q ==
                     0;
            })},
       ""},
      {"A17",
       "cache_offsets is optional: where a chunk of keys begins; chunks merge by their LSE",
       {flare_chunks_case("two chunks", prompts, 2), flare_chunks_case("five chunks", prompts, 5),
        flare_chunks_case("dense rope, three chunks", equal_keys(), 3, dense),
        refused_field("of another batch", "key_positions", flare_with([](Call& c) {
                        c.cache_offsets = fake_view(DataType::int32, {3});
                      }))},
       ""},
      {"A18",
       "The device and the stream are the caller's",
       {flare_case("a stream of its own", ragged())},
       ""},
      {"A20",
       "Types of k, v, k_rope and scales are independent; what is legal is told by name",
       {refused_field("k in fp16", "k", flare_with([](Call& c) { c.k.dtype = DataType::fp16; })),
        refused_field("v in fp32", "v", flare_with([](Call& c) { c.v.dtype = DataType::fp32; })),
        refused_field("k_rope in e4m3 without scales", "k_rope",
                      flare_with([](Call& c) { c.k_rope.dtype = DataType::fp8_e4m3; })),
        refused_descriptor("k_rope in bf16 under an fp16 q", "dtype_rope",
                           flare_mla_prefill_descriptor(
                               {.num_heads = 4, .dtype = DataType::fp16, .dtype_rope = bf16})),
        flare_case("all fp16", ragged({.num_heads = 4, .dtype = DataType::fp16})),
        flare_fp8_case("k_rope in e4m3", with_types_of(bf16, e4m3), ragged_requests),
        flare_fp8_case("q, k and v in e4m3, k_rope in bf16", with_types_of(e4m3, bf16),
                       ragged_requests),
        flare_fp8_case("all e4m3", with_types_of(e4m3, e4m3), ragged_requests)},
       ""},
  };
}

}  // namespace

std::vector<Requirement> flare_rows() {
  return joined(joined(joined(overload_rows(), tensor_rows()), argument_rows()),
                joined(mask_cases_row(), option_rows()));
}

}  // namespace attnjit::contract
