// Prefill kernels that together have every mask, modifier, page size and head dim: they compile for
// each architecture and keep everything in registers.
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "../cache/scratch_directory.hpp"
#include "attnjit/model_plan.hpp"
#include "catch.hpp"
#include "compiled_kernels.hpp"
#include "ragged_prefill.hpp"

namespace {

using namespace attnjit;
using namespace attnjit::test;

constexpr DataType bf16 = DataType::bf16;
constexpr DataType fp16 = DataType::fp16;
constexpr ScoreModifier none = ScoreModifier::none;
constexpr ScoreModifier softcap = ScoreModifier::softcap;
constexpr ScoreModifier alibi = ScoreModifier::alibi;

// What of a call shapes its kernel's registers.
struct Shape {
  int head_dim_qk;
  int head_dim_v;
  int q_per_kv;
  int page_size;  // 0: ragged
  DataType dtype;
  MaskKind mask;
  ScoreModifier score_modifier;
  int sparsity_block;
  bool has_sinks;
};

// Masks meet modifiers, blocks and small pages on the tiles that have the fewest registers left.
constexpr Shape shapes[] = {
    {64, 64, 8, 0, bf16, MaskKind::sliding_window, none, 0, true},
    {40, 24, 2, 0, fp16, MaskKind::prefix_lm, none, 0, false},
    {72, 72, 1, 1, fp16, MaskKind::chunked, softcap, 0, false},
    {80, 80, 1, 3, bf16, MaskKind::document, alibi, 64, true},
    {128, 128, 4, 0, bf16, MaskKind::causal, none, 0, false},
    {128, 128, 7, 3, bf16, MaskKind::tree, alibi, 16, true},
    {128, 128, 8, 64, fp16, MaskKind::materialized_additive, softcap, 64, true},
    {192, 128, 1, 0, bf16, MaskKind::chunked_causal, alibi, 0, false},
    {256, 256, 2, 64, bf16, MaskKind::sliding_window, softcap, 0, true},
    {256, 256, 4, 1, fp16, MaskKind::materialized_bits, alibi, 128, true},
    {512, 512, 4, 0, bf16, MaskKind::none, softcap, 0, false},
    {576, 512, 16, 64, bf16, MaskKind::causal, none, 0, true},
    {576, 512, 12, 1, fp16, MaskKind::document, alibi, 48, true},
    {320, 256, 40, 64, bf16, MaskKind::materialized_bool, softcap, 0, false},
};

AttentionDescriptor to_descriptor(const Shape& shape) {
  AttentionDescriptor descriptor =
      prefill_over(shape.page_size, shape.head_dim_qk, shape.head_dim_v, shape.q_per_kv);
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = shape.dtype;
  set_mask(descriptor, shape.mask);
  descriptor.score_modifier = shape.score_modifier;
  set_blocks(descriptor, shape.sparsity_block);
  descriptor.has_sinks = shape.has_sinks;
  return descriptor;
}

TEST_CASE("prefill kernels of every mask compile for every architecture without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  std::set<MaskKind> masks;
  for (const Shape& shape : shapes) {
    masks.insert(shape.mask);
    for (const char* arch : architectures) {
      add_kernels({"prefill", to_descriptor(shape)}, arch, library, kernels);
    }
  }
  CHECK(masks.size() == static_cast<std::size_t>(
                            MaskKind::custom));  // all before custom: composed_kernels_test.cpp
  CHECK(count_of(kernels, "prefill_sm80") == std::size(shapes) * std::size(architectures));
  check_all_compile(kernels);
}

// Of pages, of pages of one token, and dense; all masks and tiles are those of whole keys.
TEST_CASE("kernels of rope columns apart compile for every architecture without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  for (const int page_size : {64, 1, 0}) {
    for (const char* arch : architectures) {
      add_kernels({"rope", rope_prefill(page_size)}, arch, library, kernels);
    }
  }
  CHECK(count_of(kernels, "prefill_sm80") == 3 * std::size(architectures));
  check_all_compile(kernels);
}

// With the largest tile: a plan's prefill may bring any number of query tokens.
TEST_CASE("the prefill kernels of well-known models compile for Hopper without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  const std::filesystem::path models = ATTNJIT_SOURCE_DIR "/tools/models";
  PlanOptions options;
  options.phases = {Phase::prefill};
  Kernels kernels;
  for (const std::string name : {"llama-3.1-8b", "gemma-2-9b", "gpt-oss-20b", "deepseek-v3"}) {
    for (const PlannedDescriptor& planned :
         plan_model(read_text(models / (name + ".json")), options).planned) {
      add_kernels({name, planned.descriptor}, "sm_90a", library, kernels);
    }
  }
  CHECK(kernels.num_served >= 4);
  check_all_compile(kernels);
}

}  // namespace
