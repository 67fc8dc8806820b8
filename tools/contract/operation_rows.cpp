// The twelve operations, each by a few cases; the requirements below go into detail.
#include "append_case.hpp"
#include "bit_equality_case.hpp"
#include "decode_facade_case.hpp"
#include "flare_case.hpp"
#include "flare_fp8_case.hpp"
#include "host_case.hpp"
#include "legal_calls.hpp"
#include "merge_case.hpp"
#include "prefill_facade_case.hpp"
#include "problems.hpp"
#include "reference_case.hpp"
#include "rows.hpp"
#include "sparse_mla_cases.hpp"

namespace attnjit::contract {
namespace {

std::vector<Requirement> flash_mla_operations() {
  return {
      {"§1.1",
       "get_mla_metadata: dimensions, strides and a split, on the host",
       {holds("a split of two requests",
              [] { return metadata_of({}).pieces_per_request.size() == 2; })},
       ""},
      {"§1.2",
       "flash_mla_with_kvcache: decode over per-request paged caches",
       {flash_mla_case("one token", flash_mla_problem(8, 4, 128, 1, {200, 0, 65})),
        flash_mla_case("three tokens", flash_mla_problem(8, 4, 128, 3, {200, 0, 65, 2}))},
       ""},
      {"§1.3",
       "flash_mla_prefill: dense keys, a block-sparse layout, masks",
       {flash_mla_prefill_case(
           "causal", flash_mla_prefill_problem(
                         {.num_q_heads = 8, .num_kv_heads = 4, .head_dim = 128}, 2, 150))},
       ""},
      {"§1.4",
       "mha_fwd_kvcache: prefill over a paged cache, which it may write",
       {mha_write_case("written", mha_problem({.num_heads = 3, .head_dim = 64}, 100, {150, 100}))},
       ""},
  };
}

std::vector<Requirement> flare_operations() {
  const check::Lengths lengths = {{150, 150}, {64, 150}};
  const check::PrefillCase problem = flare_problem({.num_heads = 4}, lengths);
  return {
      {"§1.5", "flare_mla_prefill, overload 1: paged k_rope", {flare_case("paged", problem)}, ""},
      {"§1.6",
       "flare_mla_prefill, overload 2: dense k_rope",
       {flare_case("dense", problem, {.page_size = 0, .width = 576})},
       ""},
      {"§1.7",
       "flare_mla_prefill, overload 3: e4m3 k_rope with scales",
       {flare_fp8_case("paged", {.num_heads = 4, .scales = FlareScales::rope_blocks}, lengths)},
       ""},
      {"§1.8",
       "flare_mla_prefill, overload 4: e4m3 q_nope, k and v with scales",
       {flare_fp8_case(
           "paged", {.num_heads = 4, .dtype = DataType::fp8_e4m3, .scales = FlareScales::per_token},
           lengths)},
       ""},
  };
}

std::vector<Requirement> other_operations() {
  return {
      {"§1.9",
       "MLA decode: K 576, V its first 512 columns, one or more query tokens, causal",
       {reference_case("16 heads, one token", mla_decode(16, {4096, 0, 130, 1})),
        reference_case("16 heads, four tokens", mla_decode(16, {4096, 0, 130, 3}, 4)),
        reference_case("128 heads, two tokens", mla_decode(128, {4096, 0, 130, 3}, 2))},
       ""},
      {"§1.10",
       "Token-sparse MLA, prefill and decode: indices, topk lengths, sinks, an extra pool, fp8",
       sparse_mla_cases(), ""},
      {"§1.11",
       "GQA and MHA, decode and prefill, any layout, page size and head ratio",
       {reference_case("decode", gqa_decode(edge_lengths())),
        reference_case("ragged prefill", prefill_of(ragged_12_4(), edge_prefills())),
        reference_case("paged prefill", prefill_of(paged_12_4(), edge_prefills())),
        append_case("cache write", prefill_of(paged_12_4(), {{3, 3}, {40, 130}, {1, 65}}),
                    AppendForm::slots)},
       ""},
      {"§1.12",
       "Partial results merge by their LSE",
       {merge_case("two parts", prefill_of(ragged_12_4(), {{129, 300}, {64, 64}}), 2),
        merge_case("32 parts", prefill_of(ragged_12_4(), {{129, 300}, {64, 64}, {1, 9}}), 32)},
       ""},
  };
}

}  // namespace

std::vector<Requirement> operation_rows() {
  return joined(joined(flash_mla_operations(), flare_operations()), other_operations());
}

}  // namespace attnjit::contract
