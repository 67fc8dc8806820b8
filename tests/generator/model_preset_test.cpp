// The presets of tools/models: every one plans, and what it plans is what is known of the model.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "attnjit/descriptor_validation.hpp"
#include "attnjit/embedded_file.hpp"
#include "attnjit/model_plan.hpp"
#include "catch.hpp"

namespace attnjit {

extern const std::span<const EmbeddedFile> embedded_models;

namespace {

ModelPlan plan_preset(const std::string& name, int tensor_parallel, std::vector<Phase> phases) {
  const auto found =
      std::find_if(embedded_models.begin(), embedded_models.end(),
                   [&](const EmbeddedFile& file) { return file.name == name + ".json"; });
  REQUIRE(found != embedded_models.end());
  PlanOptions options;
  options.tensor_parallel = tensor_parallel;
  options.phases = std::move(phases);
  return plan_model(found->text, options);
}

struct Expected {
  const char* preset;
  int tensor_parallel;
  int layers;
  int q_heads;  // per rank
  int kv_heads;
  int head_dim_qk;
  int head_dim_v;
  double softmax_scale;
};

// Written by hand from the models' papers and configurations.
constexpr Expected expected_decode[] = {
    {"deepseek-v2", 8, 60, 16, 1, 576, 512, 0.114721387},
    {"deepseek-v2-lite", 1, 27, 16, 1, 576, 512, 0.114721387},
    {"deepseek-v3", 1, 61, 128, 1, 576, 512, 0.135233779},
    {"deepseek-v3", 8, 61, 16, 1, 576, 512, 0.135233779},
    {"deepseek-v3.2", 8, 61, 16, 1, 576, 512, 0.135233779},
    {"kimi-k2", 8, 61, 8, 1, 576, 512, 0.130860800},
    {"glm-5", 8, 78, 8, 1, 576, 512, 0.0625},
    {"glm-4.7-flash", 4, 47, 5, 1, 576, 512, 0.0625},
    {"minicpm3-4b", 8, 62, 5, 1, 288, 256, 0.102062073},
    {"llama-2-7b", 8, 32, 4, 4, 128, 128, 0.088388348},
    {"llama-3.1-8b", 1, 32, 32, 8, 128, 128, 0.088388348},
    {"llama-3.1-405b", 16, 126, 8, 1, 128, 128, 0.088388348},
    {"llama-3.2-1b", 1, 16, 32, 8, 64, 64, 0.125},
    {"llama-3.2-3b", 8, 28, 3, 1, 128, 128, 0.088388348},
    {"qwen2-0.5b", 2, 24, 7, 1, 64, 64, 0.125},
    {"qwen2.5-7b", 4, 28, 7, 1, 128, 128, 0.088388348},
    {"qwen3-coder-480b", 8, 62, 12, 1, 128, 128, 0.088388348},
    {"qwen3-235b-a22b", 8, 94, 8, 1, 128, 128, 0.088388348},
    {"phi-2", 1, 32, 32, 32, 80, 80, 0.111803399},
    {"phi-3.5-mini", 1, 32, 32, 32, 96, 96, 0.102062073},
    {"phi-4", 1, 40, 40, 10, 128, 128, 0.088388348},
    {"falcon-7b", 1, 32, 71, 1, 64, 64, 0.125},
    {"falcon-180b", 8, 80, 29, 1, 64, 64, 0.125},
    {"granite-3-8b", 8, 40, 4, 1, 128, 128, 0.0078125},
    {"command-r-v01", 8, 40, 8, 8, 128, 128, 0.088388348},
    {"stablelm-3b", 1, 32, 32, 32, 80, 80, 0.111803399},
    {"smollm2-135m", 1, 30, 9, 3, 64, 64, 0.125},
    {"chatglm3-6b", 2, 28, 16, 1, 128, 128, 0.088388348},
    {"baichuan2-7b", 1, 32, 32, 32, 128, 128, 0.088388348},
    {"gemma-2b", 1, 18, 8, 1, 256, 256, 0.0625},
    {"seed-oss-36b", 8, 64, 10, 1, 128, 128, 0.088388348},
};

// Layers whose descriptor has the mask.
std::vector<int> layers_with(const ModelPlan& plan, MaskKind mask) {
  std::vector<int> layers;
  for (const PlannedDescriptor& planned : plan.planned) {
    if (planned.descriptor.mask == mask) {
      layers.insert(layers.end(), planned.layers.begin(), planned.layers.end());
    }
  }
  return layers;
}

// first, first + step, … below end.
std::vector<int> every(int first, int step, int end) {
  std::vector<int> layers;
  for (int layer = first; layer < end; layer += step) {
    layers.push_back(layer);
  }
  return layers;
}

}  // namespace

TEST_CASE("every preset plans legal descriptors that cover every layer once per phase") {
  REQUIRE(embedded_models.size() >= 30);
  for (const EmbeddedFile& preset : embedded_models) {
    INFO(preset.name);
    const ModelPlan plan = plan_model(preset.text, PlanOptions{});
    CHECK(plan.unread_fields.empty());
    CHECK(preset.text.find("\"_source\"") != std::string_view::npos);
    std::vector<int> covered = plan.layers_without_attention;
    for (const PlannedDescriptor& planned : plan.planned) {
      CHECK(find_violations(planned.descriptor, legality_rules()).empty());
      if (planned.phase == Phase::decode) {
        covered.insert(covered.end(), planned.layers.begin(), planned.layers.end());
      }
    }
    std::sort(covered.begin(), covered.end());
    CHECK(covered == every(0, 1, plan.num_layers));
  }
}

TEST_CASE("every preset plans at tp 8 or says which values it takes") {
  std::vector<std::string> refused;
  for (const EmbeddedFile& preset : embedded_models) {
    INFO(preset.name);
    PlanOptions options;
    options.tensor_parallel = 8;
    try {
      const ModelPlan plan = plan_model(preset.text, options);
      CHECK(!plan.planned.empty());
    } catch (const ModelError& error) {
      CHECK(std::string(error.what()).find("use one of 1, ") != std::string::npos);
      refused.emplace_back(preset.name);
    }
  }
  CHECK(refused == std::vector<std::string>{
                       "falcon-7b.json", "falcon3-7b.json", "gemma-3-1b.json", "glm-4.7-flash.json",
                       "phi-4.json", "qwen2-0.5b.json", "qwen2-1.5b.json", "qwen2.5-7b.json",
                       "smollm2-135m.json", "smollm2-360m.json", "starcoder2-7b.json"});
}

TEST_CASE("the decode descriptors of uniform models are what is known of them") {
  for (const Expected& expected : expected_decode) {
    INFO(expected.preset);
    const ModelPlan plan = plan_preset(expected.preset, expected.tensor_parallel, {Phase::decode});
    CHECK(plan.num_layers == expected.layers);
    REQUIRE(plan.planned.size() == 1);
    const PlannedDescriptor& planned = plan.planned[0];
    CHECK(planned.descriptor.num_q_heads == expected.q_heads);
    CHECK(planned.descriptor.num_kv_heads == expected.kv_heads);
    CHECK(planned.descriptor.head_dim_qk == expected.head_dim_qk);
    CHECK(planned.descriptor.head_dim_v == expected.head_dim_v);
    CHECK(std::abs(planned.softmax_scale - expected.softmax_scale) < 1e-8);
  }
}

TEST_CASE("DeepSeek-V3 prefills with 192 and 128 columns and one kv head per query head") {
  const ModelPlan plan = plan_preset("deepseek-v3", 8, {Phase::prefill});
  REQUIRE(plan.planned.size() == 1);
  CHECK(plan.planned[0].descriptor.head_dim_qk == 192);
  CHECK(plan.planned[0].descriptor.head_dim_v == 128);
  CHECK(plan.planned[0].descriptor.num_kv_heads == 16);
}

TEST_CASE("DeepSeek-V3.2 and GLM-5 read 2048 tokens per query") {
  for (const char* name : {"deepseek-v3.2", "glm-5"}) {
    const ModelPlan plan = plan_preset(name, 8, {Phase::decode});
    CHECK(plan.planned[0].descriptor.operation == Operation::sparse_mla_decode);
    CHECK(plan.planned[0].descriptor.topk == 2048);
  }
}

TEST_CASE("Gemma 3 has five local layers and then a full one") {
  const ModelPlan plan = plan_preset("gemma-3-27b", 1, {Phase::decode});
  REQUIRE(plan.planned.size() == 2);
  CHECK(layers_with(plan, MaskKind::causal) == every(5, 6, 62));
  CHECK(layers_with(plan, MaskKind::sliding_window).size() == 52);
  CHECK(plan.planned[0].descriptor.window_left == 1023);
  CHECK(std::abs(plan.planned[0].softmax_scale - 1 / std::sqrt(168.0)) < 1e-12);
  CHECK(plan.planned[0].descriptor.score_modifier == ScoreModifier::none);
  CHECK(plan_preset("gemma-3-1b", 1, {Phase::decode}).planned[0].descriptor.window_left == 511);
}

TEST_CASE("Gemma 2 alternates local and full layers under a soft cap of 50") {
  const ModelPlan plan = plan_preset("gemma-2-27b", 1, {Phase::decode});
  CHECK(layers_with(plan, MaskKind::sliding_window) == every(0, 2, 46));
  CHECK(layers_with(plan, MaskKind::causal) == every(1, 2, 46));
  for (const PlannedDescriptor& planned : plan.planned) {
    CHECK(planned.descriptor.score_modifier == ScoreModifier::softcap);
    CHECK(planned.softcap == 50.0);
    CHECK(std::abs(planned.softmax_scale - 1.0 / 12) < 1e-12);
  }
}

TEST_CASE("gpt-oss has a window of 128 on even layers and sinks on all") {
  const ModelPlan plan = plan_preset("gpt-oss-20b", 8, {Phase::decode});
  CHECK(layers_with(plan, MaskKind::sliding_window) == every(0, 2, 24));
  CHECK(layers_with(plan, MaskKind::causal) == every(1, 2, 24));
  CHECK(plan.planned[0].descriptor.window_left == 127);
  for (const PlannedDescriptor& planned : plan.planned) {
    CHECK(planned.descriptor.has_sinks);
    CHECK(planned.descriptor.num_q_heads == 8);
    CHECK(planned.descriptor.num_kv_heads == 1);
  }
}

TEST_CASE("Llama 4 chunks three layers of four") {
  const ModelPlan plan = plan_preset("llama-4-scout", 8, {Phase::decode});
  REQUIRE(plan.planned.size() == 2);
  CHECK(layers_with(plan, MaskKind::causal) == every(3, 4, 48));
  CHECK(layers_with(plan, MaskKind::chunked_causal).size() == 36);
  CHECK(plan.planned[0].descriptor.chunk_size == 8192);
  CHECK(plan.planned[0].descriptor.num_q_heads == 5);
  CHECK(plan.planned[0].descriptor.num_kv_heads == 1);
}

TEST_CASE("windows of every layer come from the models that have them") {
  CHECK(plan_preset("mistral-7b-v0.1", 1, {Phase::decode}).planned[0].descriptor.window_left ==
        4095);
  CHECK(plan_preset("mistral-7b-v0.3", 1, {Phase::decode}).planned[0].descriptor.mask ==
        MaskKind::causal);
  CHECK(plan_preset("phi-3-mini-4k", 1, {Phase::decode}).planned[0].descriptor.window_left == 2046);
  CHECK(plan_preset("starcoder2-7b", 4, {Phase::decode}).planned[0].descriptor.window_left == 4095);
}

TEST_CASE("Qwen3-Next and Qwen3.5 have attention in every fourth layer") {
  for (const auto& [name, layers] :
       {std::pair{"qwen3-next-80b", 48}, std::pair{"qwen3.5-27b", 64}}) {
    const ModelPlan plan = plan_preset(name, 1, {Phase::decode});
    REQUIRE(plan.planned.size() == 1);
    CHECK(plan.planned[0].layers == every(3, 4, layers));
    CHECK(plan.planned[0].descriptor.head_dim_qk == 256);
  }
}

}  // namespace attnjit
