#include "model_families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "attnjit/model_plan.hpp"
#include "attnjit/shown_text.hpp"

namespace attnjit {
namespace {

// A default stands here only where the model's class in Hugging Face transformers has it and
// published files rely on it.
constexpr std::array grouped_families = {
    GroupedFamily{.model_type = "cohere", .kv_heads_default_to_q_heads = true},
    GroupedFamily{.model_type = "cohere2",
                  .window_rule = WindowRule::full_every_nth,
                  .full_every = 4,
                  .kv_heads_default_to_q_heads = true,
                  .default_window = 4096},
    GroupedFamily{.model_type = "deepseek", .kv_heads_default_to_q_heads = true},
    GroupedFamily{.model_type = "ernie4_5"},
    GroupedFamily{.model_type = "ernie4_5_moe"},
    GroupedFamily{.model_type = "gemma", .default_head_dim = 256},
    GroupedFamily{.model_type = "gemma2",
                  .window_rule = WindowRule::full_every_nth,
                  .full_every = 2,
                  .scale_rule = ScaleRule::query_pre_attn_scalar,
                  .default_head_dim = 256,
                  .default_window = 4096},
    GroupedFamily{.model_type = "gemma3_text",
                  .window_rule = WindowRule::full_every_nth,
                  .full_every = 6,
                  .scale_rule = ScaleRule::query_pre_attn_scalar,
                  .default_q_heads = 8,
                  .default_kv_heads = 4,
                  .default_head_dim = 256,
                  .default_window = 4096,
                  .default_layers = 26},
    GroupedFamily{.model_type = "glm"},
    GroupedFamily{.model_type = "glm4"},
    GroupedFamily{.model_type = "glm4_moe"},
    GroupedFamily{.model_type = "gpt_oss",
                  .window_rule = WindowRule::full_every_nth,
                  .full_every = 2,
                  .has_sinks = true,
                  .default_window = 128},
    GroupedFamily{.model_type = "granite",
                  .scale_rule = ScaleRule::attention_multiplier,
                  .kv_heads_default_to_q_heads = true},
    GroupedFamily{.model_type = "granitemoe",
                  .scale_rule = ScaleRule::attention_multiplier,
                  .kv_heads_default_to_q_heads = true},
    GroupedFamily{.model_type = "internlm", .kv_heads_default_to_q_heads = true},
    GroupedFamily{.model_type = "internlm2", .kv_heads_default_to_q_heads = true},
    GroupedFamily{.model_type = "llama", .kv_heads_default_to_q_heads = true},
    GroupedFamily{.model_type = "minicpm", .kv_heads_default_to_q_heads = true},
    GroupedFamily{.model_type = "minimax_m2"},
    GroupedFamily{.model_type = "ministral3", .window_rule = WindowRule::always},
    GroupedFamily{
        .model_type = "mistral", .window_rule = WindowRule::always, .default_window = 4096},
    GroupedFamily{.model_type = "mixtral", .window_rule = WindowRule::always},
    GroupedFamily{.model_type = "olmo", .kv_heads_default_to_q_heads = true},
    GroupedFamily{.model_type = "olmo2", .kv_heads_default_to_q_heads = true},
    GroupedFamily{.model_type = "olmo3",
                  .window_rule = WindowRule::full_every_nth,
                  .full_every = 4,
                  .kv_heads_default_to_q_heads = true,
                  .default_window = 4096},
    GroupedFamily{.model_type = "phi", .kv_heads_default_to_q_heads = true},
    GroupedFamily{.model_type = "phi3",
                  .window_rule = WindowRule::always,
                  .kv_heads_default_to_q_heads = true},
    GroupedFamily{.model_type = "qwen2", .window_rule = WindowRule::after_layer},
    GroupedFamily{.model_type = "qwen2_moe", .window_rule = WindowRule::after_layer},
    GroupedFamily{.model_type = "qwen3", .window_rule = WindowRule::after_layer},
    GroupedFamily{.model_type = "qwen3_moe", .window_rule = WindowRule::when_enabled},
    GroupedFamily{.model_type = "qwen3_vl_moe_text"},
    GroupedFamily{.model_type = "qwen3_vl_text"},
    GroupedFamily{.model_type = "seed_oss"},
    GroupedFamily{.model_type = "stablelm"},
    GroupedFamily{.model_type = "starcoder2", .window_rule = WindowRule::always},
};

struct OwnReader {
  std::string_view model_type;
  std::vector<ModelLayer> (*read)(const ConfigObject&);
};

constexpr std::array own_readers = {
    OwnReader{"baichuan", read_baichuan_layers},
    OwnReader{"chatglm", read_chatglm_layers},
    OwnReader{"deepseek_v2", read_latent_layers},
    OwnReader{"deepseek_v3", read_latent_layers},
    OwnReader{"deepseek_v32", read_sparse_latent_layers},
    OwnReader{"falcon", read_falcon_layers},
    OwnReader{"glm4_moe_lite", read_latent_layers},
    OwnReader{"glm_moe_dsa", read_sparse_latent_layers},
    OwnReader{"kimi_k2", read_latent_layers},
    OwnReader{"llama4_text", read_llama4_layers},
    OwnReader{"minicpm3", read_latent_layers},
    OwnReader{"nemotron-nas", read_nemotron_nas_layers},
    OwnReader{"nemotron_h", read_nemotron_h_layers},
    OwnReader{"qwen3_5_moe_text", read_qwen3_next_layers},
    OwnReader{"qwen3_5_text", read_qwen3_next_layers},
    OwnReader{"qwen3_next", read_qwen3_next_layers},
};

}  // namespace

std::vector<std::string> known_model_types() {
  std::vector<std::string> types;
  for (const GroupedFamily& family : grouped_families) {
    types.emplace_back(family.model_type);
  }
  for (const OwnReader& reader : own_readers) {
    types.emplace_back(reader.model_type);
  }
  std::sort(types.begin(), types.end());
  return types;
}

std::vector<ModelLayer> read_model_layers(const ConfigObject& config,
                                          const std::string& model_type) {
  for (const GroupedFamily& family : grouped_families) {
    if (family.model_type == model_type) {
      return read_grouped_layers(config, family);
    }
  }
  for (const OwnReader& reader : own_readers) {
    if (reader.model_type == model_type) {
      return reader.read(config);
    }
  }
  throw ModelError(fmt::format(
      "model_type = \"{}\": not a known architecture; known are {}; fix: plan it by hand, with "
      "attention descriptors, or add a reader in generator/src/model_families.cpp",
      shown_text(model_type), fmt::join(known_model_types(), ", ")));
}

}  // namespace attnjit
