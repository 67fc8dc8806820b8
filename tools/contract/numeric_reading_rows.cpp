// §4.9 to §4.13: how types, sparse layouts, head dims and flare's offsets are read.
#include <utility>

#include "attnjit/descriptor_validation.hpp"
#include "default_scale.hpp"
#include "flare_case.hpp"
#include "host_case.hpp"
#include "legal_calls.hpp"
#include "merge_case.hpp"
#include "prefill_facade_case.hpp"
#include "problems.hpp"
#include "reference_case.hpp"
#include "rows.hpp"
#include "unit_scales_case.hpp"

namespace attnjit::contract {
namespace {

using Code = FlashMlaErrorCode;
using Heads = check::MaskExtents::Heads;

constexpr DataType bf16 = DataType::bf16;
constexpr DataType e4m3 = DataType::fp8_e4m3;

ContractCase fp8_case(const std::string& name, const AttentionDescriptor& descriptor) {
  return reference_case(name, prefill_of(descriptor, edge_prefills()));
}

Requirement mixed_types_row() {
  ContractCases cases = {
      refused_as("fp8 caches of bf16 q", Code::dtype_mismatch, decode_with([](FlashMlaCall& c) {
                   c.k_cache.dtype = c.v_cache.dtype = DataType::fp8_e4m3;
                 }))};
  for (const ScaleGrain grain : {ScaleGrain::none, ScaleGrain::per_tensor, ScaleGrain::per_head,
                                 ScaleGrain::per_token, ScaleGrain::per_block}) {
    cases.push_back(fp8_case("bf16 q over an e4m3 cache, scales " + std::string(to_string(grain)),
                             with_fp8(paged_12_4(), bf16, e4m3, grain)));
  }
  cases.push_back(fp8_case("bf16 q over ragged e4m3 keys",
                           with_fp8(ragged_12_4(), bf16, e4m3, ScaleGrain::per_head)));
  cases.push_back(fp8_case("bf16 q over an e5m2 cache",
                           with_fp8(paged_12_4(), bf16, DataType::fp8_e5m2, ScaleGrain::per_head)));
  cases.push_back(refused_descriptor("scales of a bf16 cache", "scales_kv",
                                     with_fp8(paged_12_4(), bf16, bf16, ScaleGrain::per_head)));
  return {"§4.9",
          "Mixed types are an error of FlashMLA's interface, and a choice of the descriptor: bf16 "
          "q over an fp8 cache with scales",
          cases, ""};
}

AttentionDescriptor with_out(AttentionDescriptor descriptor, DataType dtype, ScaleGrain grain) {
  descriptor.dtype_out = dtype;
  descriptor.scales_out = grain;
  return descriptor;
}

Requirement scales_row() {
  ContractCases cases;
  for (const ScaleGrain grain : {ScaleGrain::none, ScaleGrain::per_tensor, ScaleGrain::per_head}) {
    cases.push_back(fp8_case("e4m3 q, k and v, scales " + std::string(to_string(grain)),
                             with_fp8(paged_12_4(), e4m3, e4m3, grain)));
  }
  const AttentionDescriptor scaled = with_fp8(ragged_12_4(), e4m3, e4m3, ScaleGrain::per_head);
  for (const DataType out : {e4m3, DataType::fp8_e5m2}) {
    const std::string name = std::string(to_string(out)) + " output";
    cases.push_back(
        fp8_case(name + " with a scale", with_out(scaled, out, ScaleGrain::per_tensor)));
    cases.push_back(fp8_case(name + ", scale 1", with_out(scaled, out, ScaleGrain::none)));
  }
  cases.push_back(unit_scales_case("scales that the call leaves out are 1",
                                   prefill_of(scaled, edge_prefills())));
  const auto refused = [&](const std::string& name, const std::string& field, auto spoil) {
    cases.push_back(refused_field(name, field, run_prefill_with(scaled, spoil)));
  };
  refused("scales in bf16", "k_scales", [](PrefillCall& c) { c.k_scales.dtype = bf16; });
  refused("a scale for each query head", "q_scales", [](PrefillCall& c) {
    c.q_scales = fake_view(DataType::fp32, {2, 12});
  });
  refused("an LSE in bf16", "lse", [](PrefillCall& c) {
    c.lse = fake_view(bf16, {12, c.q.shape[0]});
  });
  return {"§4.10",
          "fp8 scales are 1 unless given, per tensor or [B, Hk]; the output is bf16, the LSE fp32",
          cases, ""};
}

// Layouts of [B or 1, heads, query blocks, key blocks].
Requirement sparse_row() {
  ContractCases cases;
  AttentionDescriptor descriptor = ragged_12_4();
  descriptor.sparsity = Sparsity::block;
  descriptor.sparsity_block = 64;
  for (const Heads heads : {Heads::one, Heads::kv, Heads::q}) {
    for (const check::BlockPattern pattern :
         {check::BlockPattern::random, check::BlockPattern::empty_rows, check::BlockPattern::all}) {
      check::PrefillCase sparse = prefill_of(descriptor, edge_prefills());
      sparse.mask_extents = {pattern != check::BlockPattern::random, true, heads};
      sparse.blocks = pattern;
      const std::string of_heads = heads == Heads::one  ? "all heads"
                                   : heads == Heads::kv ? "kv heads"
                                                        : "query heads";
      cases.push_back(reference_case(std::string(to_string(pattern)) + ", " + of_heads, sparse));
    }
  }
  cases.push_back(flash_mla_prefill_case(
      "compressed rows",
      flash_mla_prefill_problem(
          {.num_q_heads = 8, .num_kv_heads = 4, .head_dim = 128, .sparsity_block = 64}, 2, 200),
      BlockLayoutForm::compressed_rows));
  check::PrefillCase unscaled =
      flash_mla_prefill_problem({.num_q_heads = 8, .num_kv_heads = 4, .head_dim = 128}, 2, 150);
  unscaled.softmax_scale = default_scale(128);
  cases.push_back(flash_mla_prefill_case("no scale given", unscaled));
  cases.push_back(
      refused_field("int64 offsets", "block_rows", run_prefill_with(descriptor, [](PrefillCall& c) {
                      c.block_mask = {};
                      c.block_rows = fake_view(DataType::int64, {2, 1, 3});
                      c.block_columns = fake_view(DataType::int32, {4});
                    })));
  cases.push_back(
      refused_as("int64 block table", Code::dtype_mismatch,
                 metadata_with([](LegalDecode& d) { d.block_table.dtype = DataType::int64; })));
  return {"§4.11",
          "sparse_layout is bytes or compressed rows per block, and with the mask; an empty row "
          "gives 0; the scale is 1/sqrt(D) unless given; int64 indices are not read as int32",
          cases, ""};
}

ContractCase refused_dim(int head_dim_qk, int head_dim_v, const std::string& field) {
  return refused_descriptor(
      "head_dim " + std::to_string(head_dim_qk) + "/" + std::to_string(head_dim_v), field,
      with_dims(ragged_12_4(), head_dim_qk, head_dim_v));
}

// Every head dim that is asked for by name, and some multiples of 8.
Requirement head_dim_row() {
  ContractCases cases;
  for (const auto& [qk, v] : std::vector<std::pair<int, int>>{{64, 64},
                                                              {72, 72},
                                                              {80, 80},
                                                              {96, 96},
                                                              {112, 112},
                                                              {128, 128},
                                                              {192, 128},
                                                              {256, 256},
                                                              {512, 512},
                                                              {8, 8},
                                                              {104, 104},
                                                              {136, 136},
                                                              {200, 200},
                                                              {248, 248}}) {
    const std::string name = std::to_string(qk) + "/" + std::to_string(v);
    cases.push_back(reference_case(
        "decode " + name,
        decode_of(with_dims(check::gqa_descriptor(12, 4, qk, 1), qk, v), {65, 0, 300})));
    cases.push_back(reference_case(
        "prefill " + name,
        prefill_of(with_dims(check::ragged_descriptor(6, 2, qk), qk, v), edge_prefills())));
  }
  for (const auto& [qk, v] : std::vector<std::pair<int, int>>{{576, 512}, {320, 256}}) {
    const std::string name = std::to_string(qk) + "/" + std::to_string(v);
    cases.push_back(reference_case(
        "decode " + name, decode_of(with_dims(check::mla_descriptor(16, 1), qk, v), {65, 0, 300})));
    AttentionDescriptor latent = with_dims(check::paged_descriptor(16, 1, qk), qk, v);
    latent.value_source = ValueSource::prefix_of_k;
    cases.push_back(reference_case("prefill " + name, prefill_of(latent, edge_prefills())));
  }
  cases.push_back(refused_dim(100, 100, "head_dim_qk"));
  cases.push_back(refused_dim(264, 264, "head_dim_qk"));
  cases.push_back(refused_dim(1024, 1024, "head_dim_qk"));
  cases.push_back(refused_dim(0, 128, "head_dim_qk"));
  cases.push_back(refused_dim(128, 68, "head_dim_v"));
  return {"§4.12",
          "Head dims 64 to 128, 192/128, 256, 512, 576/512, 320/256 and all multiples of 8 up to "
          "256; others are refused with the list",
          cases, ""};
}

Requirement flare_reading_row() {
  const check::Lengths suffixes = {{64, 300}, {1, 127}, {33, 33}};
  const check::PrefillCase problem = flare_problem({.num_heads = 4}, suffixes);
  return {"§4.13",
          "valid_length is offsets of query rows; cache_offsets is where a chunk of keys begins; "
          "the first query stands behind what is cached",
          {flare_case("suffixes of cached prompts", problem),
           flare_chunks_case("chunks of the keys", problem, 3),
           flare_case("dense, aligned at the bottom right",
                      flare_problem({.num_heads = 4}, {{150, 150}, {64, 150}, {1, 150}}),
                      {.page_size = 0, .width = 64}),
           merge_case("chunks of a plain prefill", prefill_of(ragged_12_4(), suffixes), 4)},
          ""};
}

}  // namespace

std::vector<Requirement> numeric_reading_rows() {
  return {mixed_types_row(), scales_row(), sparse_row(), head_dim_row(), flare_reading_row()};
}

}  // namespace attnjit::contract
