// The descriptors of flare_mla_prefill's overloads, and that each of its tensors is one of the
// prefill's. None of it needs a GPU; running is tests/gpu's.
#include "attnjit/flare_mla_prefill.hpp"

#include <string>
#include <vector>

#include "attnjit/descriptor_validation.hpp"
#include "bad_call.hpp"
#include "catch.hpp"
#include "prefill_calls.hpp"

namespace attnjit {
namespace {

using namespace test;

TEST_CASE("a flare MLA prefill is causal over DeepSeek's columns unless told otherwise") {
  const AttentionDescriptor paged =
      flare_mla_prefill_descriptor({.num_heads = 16, .page_size = 64});
  CHECK_NOTHROW(validate(paged));
  CHECK(paged.operation == Operation::mla_prefill_rope);
  CHECK(paged.head_dim_qk == 192);
  CHECK(paged.head_dim_v == 128);
  CHECK(paged.num_q_heads == 16);
  CHECK(paged.num_kv_heads == 16);
  CHECK(paged.max_seqlen_q == 0);
  CHECK(paged.kv_layout == KvLayout::paged);
  CHECK(paged.kv_layout_tag == KvLayoutTag::nhd);
  CHECK(paged.page_size == 64);
  CHECK(paged.mask == MaskKind::causal);
  CHECK_FALSE(paged.returns_lse);
  CHECK(paged.dtype_q == DataType::bf16);

  const AttentionDescriptor dense = flare_mla_prefill_descriptor({.num_heads = 3,
                                                                  .q_depth = 96,
                                                                  .depth = 64,
                                                                  .returns_lse = true,
                                                                  .mask = MaskKind::none,
                                                                  .dtype = DataType::fp16});
  CHECK_NOTHROW(validate(dense));
  CHECK(dense.head_dim_qk == 96);
  CHECK(dense.head_dim_v == 64);
  CHECK(dense.kv_layout == KvLayout::dense);
  CHECK(dense.kv_layout_tag == KvLayoutTag::bshd);
  CHECK(dense.mask == MaskKind::none);
  CHECK(dense.returns_lse);
  for (const DataType dtype : {dense.dtype_q, dense.dtype_kv, dense.dtype_out}) {
    CHECK(dtype == DataType::fp16);
  }
}

std::vector<std::string> refused_fields(const AttentionDescriptor& descriptor) {
  std::vector<std::string> fields;
  try {
    validate(descriptor);
  } catch (const DescriptorError& error) {
    for (const Violation& violation : error.violations()) {
      fields.push_back(violation.field);
    }
  }
  return fields;
}

TEST_CASE("each overload of a flare MLA prefill has its types and scales") {
  const AttentionDescriptor halves =
      flare_mla_prefill_descriptor({.num_heads = 16, .dtype = DataType::fp16});
  CHECK(halves.dtype_rope == DataType::fp16);
  CHECK(halves.scales_rope == ScaleGrain::none);
  CHECK_FALSE(halves.q_rope_apart);

  const AttentionDescriptor rope = flare_mla_prefill_descriptor(
      {.num_heads = 16, .page_size = 64, .dtype_rope = DataType::fp8_e4m3});
  CHECK_NOTHROW(validate(rope));
  CHECK(rope.dtype_q == DataType::bf16);
  CHECK(rope.dtype_rope == DataType::fp8_e4m3);
  CHECK(rope.scales_rope == ScaleGrain::none);

  const AttentionDescriptor all = flare_mla_prefill_descriptor(
      {.num_heads = 16, .dtype = DataType::fp8_e4m3, .dtype_rope = DataType::fp8_e4m3});
  CHECK_NOTHROW(validate(all));
  CHECK(all.dtype_q == DataType::fp8_e4m3);
  CHECK(all.dtype_kv == DataType::fp8_e4m3);
  CHECK(all.dtype_out == DataType::bf16);
  CHECK(all.dtype_rope == DataType::fp8_e4m3);

  const AttentionDescriptor blocks = flare_mla_prefill_descriptor(
      {.num_heads = 16, .page_size = 64, .scales = FlareScales::rope_blocks});
  CHECK_NOTHROW(validate(blocks));
  CHECK(blocks.dtype_kv == DataType::bf16);
  CHECK(blocks.dtype_rope == DataType::fp8_e4m3);
  CHECK(blocks.scales_rope == ScaleGrain::per_block);
  CHECK(blocks.scale_block == 64);
  CHECK(blocks.scales_q == ScaleGrain::none);
  CHECK_FALSE(blocks.q_rope_apart);

  const AttentionDescriptor tokens = flare_mla_prefill_descriptor(
      {.num_heads = 16, .dtype = DataType::fp8_e4m3, .scales = FlareScales::per_token});
  CHECK_NOTHROW(validate(tokens));
  CHECK(tokens.q_rope_apart);
  CHECK(tokens.dtype_rope == DataType::bf16);
  CHECK(tokens.dtype_out == DataType::bf16);
  CHECK(tokens.scales_q == ScaleGrain::per_token);
  CHECK(tokens.scales_kv == ScaleGrain::per_token);
  CHECK(tokens.scales_rope == ScaleGrain::none);
}

TEST_CASE("a flare MLA prefill of types that do not go together is refused by the field's name") {
  const FlareMlaPrefillShape shape = {.num_heads = 16, .page_size = 64};
  FlareMlaPrefillShape unscaled = shape;
  unscaled.scales = FlareScales::per_token;
  CHECK(refused_fields(flare_mla_prefill_descriptor(unscaled)) ==
        std::vector<std::string>{"scales_q", "scales_kv"});
  FlareMlaPrefillShape rope = shape;
  rope.dtype_rope = DataType::bf16;
  rope.scales = FlareScales::rope_blocks;
  CHECK(refused_fields(flare_mla_prefill_descriptor(rope)) ==
        std::vector<std::string>{"scales_rope"});
  rope.dtype_rope = DataType::fp16;
  rope.scales = FlareScales::none;
  CHECK(refused_fields(flare_mla_prefill_descriptor(rope)) ==
        std::vector<std::string>{"dtype_rope"});
  FlareMlaPrefillShape e5m2 = shape;
  e5m2.dtype = DataType::fp8_e5m2;
  CHECK(refused_fields(flare_mla_prefill_descriptor(e5m2)) == std::vector<std::string>{"dtype_q"});
  FlareMlaPrefillShape no_rope = shape;
  no_rope.depth = no_rope.q_depth;
  CHECK(refused_fields(flare_mla_prefill_descriptor(no_rope)) ==
        std::vector<std::string>{"head_dim_qk"});
}

// Of 2 requests with 50 query tokens and 128 rows of k and v in all.
FlareMlaPrefillCall flare_call() {
  FlareMlaPrefillCall call;
  call.output = elements({50, 16, 128}, 2);
  call.q = elements({50, 16, 192}, 3);
  call.k = elements({128, 16, 128}, 4);
  call.v = elements({128, 16, 128}, 5);
  call.k_rope = elements({9, 64, 1, 576}, 6);
  call.block_table = integers({2, 4}, 7);
  call.cache_lengths = integers({2}, 8);
  call.valid_length = integers({3}, 9);
  call.cache_row_offsets = integers({3}, 10);
  call.cache_offsets = integers({2}, 11);
  call.lse = fp32_numbers({16, 50}, 12);
  return call;
}

// Is refused, or launches nothing: there is no kernel behind it.
void run_with(const FlareMlaPrefillShape& shape, const FlareMlaPrefillCall& call) {
  PreparedPrefill kernel;
  kernel.descriptor = flare_mla_prefill_descriptor(shape);
  kernel.config.block_m = 128;
  kernel.config.q_per_kv = 1;
  flare_mla_prefill(kernel, call, nullptr);
}

void run(const FlareMlaPrefillCall& call) {
  run_with({.num_heads = 16, .page_size = 64}, call);
}

TEST_CASE("every tensor of a flare MLA prefill is one of the prefill's, by its name") {
  using Call = FlareMlaPrefillCall;
  check_bad_calls<Call>(
      {
          {"out", "must have shape [50, 16, 128]", [](Call& c) { c.output.shape[0] = 49; }},
          {"q", "must have shape [any, 16, 192]", [](Call& c) { c.q.shape[2] = 128; }},
          {"k", "must have shape [any, 16, 128]", [](Call& c) { c.k.shape[2] = 192; }},
          {"v", "must have shape [128, 16, 128]", [](Call& c) { c.v.shape[0] = 127; }},
          {"k_rope", "must have at least 64 columns", [](Call& c) { c.k_rope.shape[3] = 56; }},
          {"block_table", "must have shape [2, any]", [](Call& c) { c.block_table.shape[0] = 1; }},
          {"query_positions", "must be given", [](Call& c) { c.cache_lengths = {}; }},
          {"q_offsets", "must be int32", [](Call& c) { c.valid_length.dtype = DataType::fp32; }},
          {"kv_offsets", "must have shape [3]", [](Call& c) { c.cache_row_offsets.shape[0] = 4; }},
          {"key_positions", "must have shape [2]", [](Call& c) { c.cache_offsets.shape[0] = 3; }},
          {"lse", "must have shape [16, 50]", [](Call& c) { c.lse.shape[0] = 50; }},
          {"softmax_scale", "must be finite", [](Call& c) { c.scale = 1.0F / 0.0F; }},
      },
      flare_call(), run);
}

TEST_CASE("scales of the rope's blocks reach the prefill, one for 64 of its columns") {
  using Call = FlareMlaPrefillCall;
  const FlareMlaPrefillShape shape = {
      .num_heads = 16, .page_size = 64, .scales = FlareScales::rope_blocks};
  Call call = flare_call();
  call.k_rope.dtype = DataType::fp8_e4m3;
  call.k_rope_scales = fp32_numbers({9, 64, 1, 9}, 13);
  check_bad_calls<Call>(
      {
          {"rope_scales", "must have shape [9, 64, 1, 9]",
           [](Call& c) { c.k_rope_scales.shape[3] = 1; }},
          {"rope_scales", "must be fp32", [](Call& c) { c.k_rope_scales.dtype = DataType::bf16; }},
          {"k_rope", "must be fp8_e4m3", [](Call& c) { c.k_rope.dtype = DataType::bf16; }},
          {"q_scales", "must not be given",
           [](Call& c) {
             c.q_scale = fp32_numbers({50, 1});
           }},
          {"k_scales", "must not be given",
           [](Call& c) {
             c.k_scales = fp32_numbers({128, 1});
           }},
          {"q_rope", "must not be given",
           [](Call& c) {
             c.q_rope = elements({50, 16, 64});
           }},
      },
      call, [&](const Call& each) { run_with(shape, each); });
}

TEST_CASE("scales of tokens and a rope of q apart reach the prefill") {
  using Call = FlareMlaPrefillCall;
  const FlareMlaPrefillShape shape = {.num_heads = 16,
                                      .page_size = 64,
                                      .dtype = DataType::fp8_e4m3,
                                      .scales = FlareScales::per_token};
  Call call = flare_call();
  call.q = elements({50, 16, 128}, 3);
  call.q.dtype = call.k.dtype = call.v.dtype = DataType::fp8_e4m3;
  call.q_rope = elements({50, 16, 64}, 13);
  call.q_scale = fp32_numbers({50, 1}, 14);
  call.k_scales = fp32_numbers({128, 1}, 15);
  check_bad_calls<Call>(
      {
          {"q", "must have shape [any, 16, 128]",
           [](Call& c) {
             c.q = elements({50, 16, 192});
             c.q.dtype = DataType::fp8_e4m3;
           }},
          {"q_rope", "must be given", [](Call& c) { c.q_rope = {}; }},
          {"q_rope", "must be bf16", [](Call& c) { c.q_rope.dtype = DataType::fp8_e4m3; }},
          {"q_rope", "must have shape [50, 16, 64]", [](Call& c) { c.q_rope.shape[1] = 1; }},
          {"q_scales", "must have shape [50, 16 or 1]", [](Call& c) { c.q_scale.shape[0] = 16; }},
          {"k_scales", "must have shape [128, 16 or 1]", [](Call& c) { c.k_scales.shape[0] = 50; }},
          {"k_rope", "must be bf16", [](Call& c) { c.k_rope.dtype = DataType::fp8_e4m3; }},
          {"rope_scales", "must not be given",
           [](Call& c) {
             c.k_rope_scales = fp32_numbers({9, 64, 1, 9});
           }},
      },
      call, [&](const Call& each) { run_with(shape, each); });
}

TEST_CASE("a mask in memory reaches the prefill") {
  using Call = FlareMlaPrefillCall;
  const FlareMlaPrefillShape shape = {
      .num_heads = 16, .page_size = 64, .mask = MaskKind::materialized_bool};
  Call call = flare_call();
  call.mask = elements({2, 1, 50, 128}, 13);
  call.mask.dtype = DataType::uint8;
  check_bad_calls<Call>(
      {
          {"mask", "must be given", [](Call& c) { c.mask = {}; }},
          {"mask", "must be uint8", [](Call& c) { c.mask.dtype = DataType::bf16; }},
          {"mask", "must have shape [2, 16, any, any]", [](Call& c) { c.mask.shape[1] = 4; }},
      },
      call, [&](const Call& each) { run_with(shape, each); });
  CHECK_THROWS_AS(run(call), ArgumentError);  // a causal one takes none
}

TEST_CASE("a flare MLA prefill of no query tokens is done before it is launched") {
  FlareMlaPrefillCall call = flare_call();
  call.q = elements({0, 16, 192});
  call.output = elements({0, 16, 128});
  call.lse = call.cache_offsets = {};
  CHECK_NOTHROW(run(call));
}

}  // namespace
}  // namespace attnjit
