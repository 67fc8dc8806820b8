// Prefill kernels of fp8 tensors that together have every type, grain of scales and mask: they
// compile for each architecture, lie in shared memory as planned, and keep everything in registers.
#include <set>
#include <string>
#include <vector>

#include "attnjit/descriptor_validation.hpp"
#include "catch.hpp"
#include "compiled_kernels.hpp"
#include "ragged_prefill.hpp"

namespace {

using namespace attnjit;
using namespace attnjit::test;

constexpr DataType bf16 = DataType::bf16;
constexpr DataType fp16 = DataType::fp16;
constexpr DataType e4m3 = DataType::fp8_e4m3;
constexpr DataType e5m2 = DataType::fp8_e5m2;
constexpr ScaleGrain one = ScaleGrain::none;
constexpr ScaleGrain tensor = ScaleGrain::per_tensor;
constexpr ScaleGrain head = ScaleGrain::per_head;
constexpr ScaleGrain token = ScaleGrain::per_token;
constexpr ScaleGrain block = ScaleGrain::per_block;
constexpr ScoreModifier none = ScoreModifier::none;
constexpr ScoreModifier softcap = ScoreModifier::softcap;
constexpr ScoreModifier alibi = ScoreModifier::alibi;

struct Types {
  DataType q;
  DataType kv;
  DataType out;
  ScaleGrain scales_q;
  ScaleGrain scales_kv;
  int scale_block;
};

struct Shape {
  Types types;
  int head_dim_qk;
  int head_dim_v;
  int q_per_kv;
  int page_size;  // 0: ragged
  MaskKind mask;
  ScoreModifier score_modifier;
  int sparsity_block;
  bool has_sinks;
};

constexpr Shape shapes[] = {
    {{e4m3, e4m3, bf16, one, one, 0}, 128, 128, 4, 0, MaskKind::causal, none, 0, false},
    {{bf16, e4m3, bf16, one, tensor, 0}, 128, 128, 8, 64, MaskKind::causal, none, 0, false},
    {{bf16, e5m2, e4m3, one, head, 0}, 72, 72, 1, 16, MaskKind::sliding_window, softcap, 0, true},
    {{bf16, e4m3, bf16, one, one, 0}, 72, 72, 4, 0, MaskKind::causal, softcap, 0, false},
    {{bf16, e4m3, bf16, one, token, 0}, 80, 80, 4, 0, MaskKind::causal, softcap, 0, false},
    {{e4m3, e4m3, e4m3, token, token, 0}, 256, 256, 2, 64, MaskKind::causal, none, 0, false},
    {{e4m3, e5m2, e5m2, block, block, 128},
     256,
     256,
     4,
     1,
     MaskKind::materialized_bits,
     alibi,
     128,
     true},
    {{e4m3, e4m3, bf16, tensor, token, 0}, 576, 512, 16, 64, MaskKind::causal, none, 0, true},
    {{bf16, e4m3, bf16, one, block, 64}, 576, 512, 12, 1, MaskKind::document, alibi, 48, true},
    {{bf16, bf16, e4m3, one, one, 0}, 192, 128, 1, 0, MaskKind::chunked_causal, alibi, 0, false},
    {{fp16, fp16, bf16, one, one, 0}, 64, 64, 8, 0, MaskKind::none, none, 0, false},
    {{e4m3, e4m3, fp16, head, head, 0},
     128,
     128,
     8,
     64,
     MaskKind::materialized_additive,
     softcap,
     64,
     true},
    {{e4m3, e4m3, bf16, token, token, 0}, 512, 512, 4, 0, MaskKind::none, softcap, 0, false},
    {{e4m3, e4m3, bf16, token, token, 0}, 128, 128, 7, 3, MaskKind::tree, alibi, 16, true},
    {{e4m3, e4m3, bf16, token, head, 0}, 80, 80, 1, 3, MaskKind::document, alibi, 64, true},
    {{e4m3, e5m2, bf16, block, token, 64},
     320,
     256,
     40,
     64,
     MaskKind::materialized_bool,
     softcap,
     0,
     false},
    {{e4m3, e4m3, bf16, block, block, 8}, 40, 24, 2, 0, MaskKind::prefix_lm, none, 0, false},
    {{e4m3, e4m3, bf16, head, block, 32}, 192, 128, 1, 64, MaskKind::chunked, none, 0, false},
};

void set_types(AttentionDescriptor& descriptor, const Types& types) {
  descriptor.dtype_q = types.q;
  descriptor.dtype_kv = types.kv;
  descriptor.dtype_out = types.out;
  descriptor.scales_q = types.scales_q;
  descriptor.scales_kv = types.scales_kv;
  descriptor.scale_block = types.scale_block;
}

AttentionDescriptor to_descriptor(const Shape& shape) {
  AttentionDescriptor descriptor =
      prefill_over(shape.page_size, shape.head_dim_qk, shape.head_dim_v, shape.q_per_kv);
  set_types(descriptor, shape.types);
  set_mask(descriptor, shape.mask);
  descriptor.score_modifier = shape.score_modifier;
  set_blocks(descriptor, shape.sparsity_block);
  descriptor.has_sinks = shape.has_sinks;
  return descriptor;
}

TEST_CASE("fp8 prefill kernels compile for every architecture without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  std::set<ScaleGrain> grains_q;
  std::set<ScaleGrain> grains_kv;
  for (const Shape& shape : shapes) {
    REQUIRE_NOTHROW(validate(to_descriptor(shape)));
    grains_q.insert(shape.types.scales_q);
    grains_kv.insert(shape.types.scales_kv);
    for (const char* arch : architectures) {
      add_kernels({"fp8 prefill", to_descriptor(shape)}, arch, library, kernels);
    }
  }
  CHECK(grains_q.size() == 5);
  CHECK(grains_kv.size() == 5);
  CHECK(count_of(kernels, "prefill_sm80") == std::size(shapes) * std::size(architectures));
  check_all_compile(kernels);
}

struct Rope {
  DataType dtype;
  ScaleGrain scales;
  bool is_apart_in_q;
};

AttentionDescriptor with_rope(int page_size, const Types& types, const Rope& rope) {
  AttentionDescriptor descriptor = rope_prefill(page_size);
  set_types(descriptor, types);
  descriptor.dtype_rope = rope.dtype;
  descriptor.scales_rope = rope.scales;
  descriptor.q_rope_apart = rope.is_apart_in_q;
  return descriptor;
}

// The four overloads of flare_mla_prefill, then what else there is, under masks and modifiers.
std::vector<AttentionDescriptor> rope_descriptors() {
  const Types halves = {bf16, bf16, bf16, one, one, 0};
  const Types halves_in_blocks = {bf16, bf16, bf16, one, one, 64};
  const Types tokens = {e4m3, e4m3, bf16, token, token, 0};
  std::vector<AttentionDescriptor> descriptors = {
      with_rope(64, halves, {e4m3, one, false}),
      with_rope(0, {e4m3, e4m3, bf16, one, one, 0}, {e4m3, one, false}),
      with_rope(64, halves_in_blocks, {e4m3, block, false}),
      with_rope(0, halves_in_blocks, {e4m3, block, false}),
      with_rope(1, halves_in_blocks, {e5m2, block, true}),
      with_rope(64, tokens, {bf16, one, true}),
      with_rope(0, tokens, {bf16, one, true}),
      with_rope(16, {e4m3, e5m2, e4m3, head, head, 0}, {e5m2, head, true}),
  };
  AttentionDescriptor document = with_rope(3, tokens, {e4m3, token, true});
  document.mask = MaskKind::document;
  document.score_modifier = alibi;
  document.sparsity = Sparsity::block;
  document.sparsity_block = 64;
  document.has_sinks = true;
  descriptors.push_back(document);
  AttentionDescriptor chunked =
      with_rope(64, {fp16, fp16, bf16, one, one, 0}, {e4m3, tensor, false});
  chunked.mask = MaskKind::chunked;
  chunked.chunk_size = 8192;
  chunked.score_modifier = softcap;
  descriptors.push_back(chunked);
  return descriptors;
}

TEST_CASE("kernels of fp8 rope columns compile for every architecture without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  std::set<ScaleGrain> grains;
  for (const AttentionDescriptor& descriptor : rope_descriptors()) {
    REQUIRE_NOTHROW(validate(descriptor));
    grains.insert(descriptor.scales_rope);
    for (const char* arch : architectures) {
      add_kernels({"fp8 rope", descriptor}, arch, library, kernels);
    }
  }
  CHECK(grains.size() == 5);
  CHECK(count_of(kernels, "prefill_sm80") == rope_descriptors().size() * std::size(architectures));
  check_all_compile(kernels);
}

}  // namespace
