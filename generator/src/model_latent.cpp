#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "attnjit/model_plan.hpp"
#include "model_families.hpp"

namespace attnjit {
namespace {

// MiniCPM3's config.json has no v_head_dim: its class derives it from the hidden size.
int read_v_head_dim(const ConfigObject& config, int num_q_heads, std::string& reason) {
  if (const std::optional<int> v_head_dim = config.integer("v_head_dim")) {
    reason = fmt::format("v_head_dim {}", *v_head_dim);
    return *v_head_dim;
  }
  reason = "v_head_dim absent: hidden_size / num_attention_heads";
  return head_dim_of_hidden_size(config, num_q_heads);
}

// YaRN lengthens the context by `factor` and, where mscale_all_dim is set, sharpens the softmax:
// the scale is multiplied by the square of 0.1 * mscale_all_dim * ln(factor) + 1.
void read_scale(ModelLayer& layer, const ConfigObject& config) {
  std::string& reason = layer.reasons["softmax_scale"];
  std::optional<ConfigObject> rope = config.object("rope_scaling");
  if (!rope) {
    rope = config.object("rope_parameters");
  }
  const double mscale = rope ? rope->number("mscale_all_dim").value_or(0) : 0;
  if (mscale != 0) {
    const double factor = rope->number("factor").value_or(1);
    const double multiplier = factor > 1 ? 0.1 * mscale * std::log(factor) + 1 : 1;
    layer.softmax_scale *= multiplier * multiplier;
    reason += fmt::format(" * (0.1 * mscale_all_dim {} * ln(factor {}) + 1)^2", mscale, factor);
  }
}

}  // namespace

std::vector<ModelLayer> read_latent_layers(const ConfigObject& config) {
  ModelLayer layer;
  layer.kind = LayerKind::latent;
  const int num_layers = config.required_integer("num_hidden_layers", layer_count_range);
  layer.num_q_heads = config.required_integer("num_attention_heads");
  layer.reasons["num_q_heads"] = fmt::format("num_attention_heads {}", layer.num_q_heads);
  layer.kv_lora_rank = config.required_integer("kv_lora_rank");
  layer.rope_dim = config.required_integer("qk_rope_head_dim");
  const int nope_dim = config.required_integer("qk_nope_head_dim");
  layer.head_dim_qk = nope_dim + layer.rope_dim;
  layer.head_dim_v = read_v_head_dim(config, layer.num_q_heads, layer.reasons["head_dim_v"]);
  layer.reasons["head_dim_qk"] =
      fmt::format("qk_nope_head_dim {} + qk_rope_head_dim {}", nope_dim, layer.rope_dim);
  // Both repeat what the fields above say in full: MLA caches one latent head whatever they are.
  config.integer("num_key_value_heads");
  config.integer("head_dim");
  if (const std::optional<int> topk = config.integer("index_topk")) {
    layer.topk = *topk;
    layer.reasons["topk"] = fmt::format("index_topk {}", *topk);
  }
  set_plain_causal(layer);
  read_scale(layer, config);
  return std::vector<ModelLayer>(static_cast<std::size_t>(num_layers), layer);
}

std::vector<ModelLayer> read_sparse_latent_layers(const ConfigObject& config) {
  config.required_integer("index_topk");
  return read_latent_layers(config);
}

}  // namespace attnjit
