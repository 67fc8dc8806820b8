// Prefill kernels with a user's expressions, composed masks and biases: they compile for each
// architecture without local memory, and what is wrong with an expression is reported where the
// user wrote it.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "attnjit/kernel_key.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "attnjit/mask_formula.hpp"
#include "catch.hpp"
#include "compiled_kernels.hpp"
#include "ragged_prefill.hpp"

namespace {

using namespace attnjit;
using namespace attnjit::test;

constexpr std::string_view dilated = "q >= k && (q - k) % 3 != 1  // every third key is left out";
constexpr std::string_view squashed = "3.0f * score / (1.0f + fabsf(score)) - 0.01f * h * (k % 5)";

// What of a call shapes its kernel's registers.
struct Shape {
  int head_dim_qk;
  int head_dim_v;
  int q_per_kv;
  int page_size;  // 0: ragged
  std::string_view formula;
  ScoreModifier score_modifier;
  DataType dtype_bias;
  int sparsity_block;
  bool has_sinks;
};

constexpr DataType fp32 = DataType::fp32;
constexpr ScoreModifier none = ScoreModifier::none;
constexpr ScoreModifier bias = ScoreModifier::additive_bias;
constexpr ScoreModifier custom = ScoreModifier::custom;

// Formulas meet modifiers, blocks and small pages on the tiles that have the fewest registers left.
constexpr Shape shapes[] = {
    {64, 64, 8, 0, "causal and document", none, fp32, 0, true},
    {96, 96, 1, 3, "causal and document or custom", bias, DataType::fp16, 48, true},
    {128, 128, 4, 0, "causal and document", none, fp32, 0, false},
    {128, 128, 4, 0, "custom", none, fp32, 0, false},
    {128, 128, 7, 3, "causal and custom or sliding_window or chunked", custom, fp32, 64, true},
    {192, 128, 1, 0, "causal and materialized_additive", bias, DataType::bf16, 64, false},
    {256, 256, 2, 1, "causal and document or custom", bias, fp32, 64, true},
    {256, 256, 4, 1, "prefix_lm and custom or tree and sliding_window", custom, fp32, 128, true},
    {256, 256, 4, 1, "materialized_bool and causal or document and chunked", none, fp32, 0, false},
    {512, 512, 4, 0, "custom", custom, fp32, 0, false},
    {576, 512, 12, 1, "causal and document or custom", bias, DataType::bf16, 48, true},
    {320, 256, 40, 64, "materialized_bits or sliding_window", custom, fp32, 0, false},
};

void set_masks(std::string_view formula, AttentionDescriptor& descriptor) {
  descriptor.mask = MaskKind::composed;
  descriptor.mask_formula = formula;
  if (has_mask(descriptor, MaskKind::custom)) {
    descriptor.mask_expression = dilated;
  }
  if (has_mask(descriptor, MaskKind::sliding_window)) {
    descriptor.window_left = 127;
    descriptor.window_right = 3;
  }
  descriptor.chunk_size = has_mask(descriptor, MaskKind::chunked) ? 100 : 0;
  if (has_mask(descriptor, MaskKind::materialized_additive)) {
    descriptor.dtype_mask = DataType::fp16;
  }
}

AttentionDescriptor to_descriptor(const Shape& shape) {
  AttentionDescriptor descriptor =
      prefill_over(shape.page_size, shape.head_dim_qk, shape.head_dim_v, shape.q_per_kv);
  set_masks(shape.formula, descriptor);
  descriptor.score_modifier = shape.score_modifier;
  descriptor.dtype_bias = shape.dtype_bias;
  descriptor.score_expression = shape.score_modifier == custom ? squashed : "";
  set_blocks(descriptor, shape.sparsity_block);
  descriptor.has_sinks = shape.has_sinks;
  return descriptor;
}

TEST_CASE("prefill kernels of composed and custom masks and of biases need no local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  for (const Shape& shape : shapes) {
    for (const char* arch : architectures) {
      add_kernels({"prefill", to_descriptor(shape)}, arch, library, kernels);
    }
  }
  CHECK(kernels.unnamed_refusals == std::vector<std::string>{});
  CHECK(count_of(kernels, "prefill_sm80") == std::size(shapes) * std::size(architectures));
  check_all_compile(kernels);
}

AttentionDescriptor custom_prefill(const std::string& mask, const std::string& score) {
  AttentionDescriptor descriptor = ragged_prefill(64, 64, 1);
  descriptor.mask = MaskKind::custom;
  descriptor.mask_expression = mask;
  descriptor.score_modifier = score.empty() ? none : custom;
  descriptor.score_expression = score;
  return descriptor;
}

RenderedKernel rendered(const AttentionDescriptor& descriptor) {
  const TargetDevice device = find_target_device("sm_80").value();
  return render(select_configs(descriptor, device).front(), device, TemplateLibrary::embedded());
}

CacheKey key_of(const RenderedKernel& kernel, const NvrtcCompiler& compiler) {
  return make_cache_key(kernel, compiler.options(kernel), compiler.toolchain_identity());
}

std::string compile_error(const AttentionDescriptor& descriptor) {
  const NvrtcCompiler compiler;
  const RenderedKernel kernel = rendered(descriptor);
  try {
    compiler.compile(kernel, key_of(kernel, compiler));
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a compile error in an expression points at its slot, and shows its line") {
  const std::string mask = compile_error(custom_prefill("q >= k &&\nk < windowsize", ""));
  CHECK(holds(mask, "<slot mask_predicate>(2): error: identifier \"windowsize\" is undefined"));
  CHECK(holds(mask, ">     2 | k < windowsize\n"));
  const std::string score = compile_error(custom_prefill("true", "score + s"));
  CHECK(holds(score, "<slot score_modifier>(1): error: identifier \"s\" is undefined"));
  CHECK(holds(compile_error(custom_prefill("return true", "")), "<slot mask_predicate>(1): error"));
}

TEST_CASE("after a slot, compile errors point at the template again") {
  const NvrtcCompiler compiler;
  RenderedKernel kernel = rendered(custom_prefill("q > k\n|| k == 0\n|| h == 1", ""));
  int line = 0;
  for (SourceFile& header : kernel.headers) {
    if (header.name == "device/user_slots.cuh") {
      const std::string text = TemplateLibrary::embedded().text(header.name);
      line = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
      header.text += "undefined_type after;\n";
    }
  }
  std::string message;
  try {
    compiler.compile(kernel, key_of(kernel, compiler));
  } catch (const CompileError& error) {
    message = error.what();
  }
  CHECK(holds(message, "device/user_slots.cuh(" + std::to_string(line) + "): error"));
}

TEST_CASE("kernels of other expressions have other keys, of equal ones the same") {
  const NvrtcCompiler compiler;
  const auto digest = [&](const std::string& mask, const std::string& score) {
    return key_of(rendered(custom_prefill(mask, score)), compiler).text;
  };
  CHECK(digest("q > k", "score") == digest("q > k", "score"));
  CHECK(digest("q > k", "score") != digest("q >= k", "score"));
  CHECK(digest("q > k", "score") != digest("q > k", "-score"));
  CHECK(digest("q > k", "score") != digest("q > k ", "score"));
}

}  // namespace
