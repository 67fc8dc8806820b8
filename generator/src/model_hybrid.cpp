#include <fmt/format.h>

#include "attnjit/model_plan.hpp"
#include "attnjit/shown_text.hpp"
#include "model_families.hpp"

namespace attnjit {
namespace {

ModelLayer layer_without_attention() {
  ModelLayer layer;
  layer.kind = LayerKind::no_attention;
  return layer;
}

// One layer of a Nemotron found by architecture search: its kv heads, or none at all.
ModelLayer read_searched_layer(const ConfigObject& block, int num_q_heads, int head_dim) {
  const std::optional<ConfigObject> attention = block.object("attention");
  if (!attention) {
    throw ModelError(fmt::format("{} is missing: says what the layer's attention is; fix: give it",
                                 block.path_of("attention")));
  }
  if (attention->boolean("no_op").value_or(false) ||
      attention->boolean("replace_with_linear").value_or(false)) {
    return layer_without_attention();
  }
  const int group = attention->required_integer("n_heads_in_group");
  if (num_q_heads % group != 0) {
    throw ModelError(fmt::format("{} = {}: must divide num_attention_heads {}; fix: correct either",
                                 attention->path_of("n_heads_in_group"), group, num_q_heads));
  }
  ModelLayer layer = layer_without_attention();
  layer.kind = LayerKind::grouped;
  set_head_counts(layer, num_q_heads, fmt::format("num_attention_heads {}", num_q_heads),
                  num_q_heads / group,
                  fmt::format("num_attention_heads {} / n_heads_in_group {}", num_q_heads, group));
  set_head_dim(layer, head_dim, fmt::format("hidden_size / num_attention_heads {}", num_q_heads));
  set_plain_causal(layer);
  return layer;
}

}  // namespace

std::vector<ModelLayer> read_nemotron_h_layers(const ConfigObject& config) {
  const int num_layers = config.required_integer("num_hidden_layers", layer_count_range);
  const std::string pattern = config.text("hybrid_override_pattern").value_or("");
  if (pattern.size() != static_cast<std::size_t>(num_layers)) {
    throw ModelError(fmt::format(
        "{} has {} letters: must have one per layer, num_hidden_layers = {}; fix: correct either",
        config.path_of("hybrid_override_pattern"), pattern.size(), num_layers));
  }
  config.integer("chunk_size");  // of the Mamba layers' scan
  // Older files call the head dimension attention_head_dim.
  const int head_dim = config.integer("attention_head_dim").value_or(0);
  const ModelLayer attention =
      read_grouped_layer(config, {.model_type = "nemotron_h", .default_head_dim = head_dim});
  std::vector<ModelLayer> layers;
  for (const char letter : pattern) {
    if (std::string_view("M-*E").find(letter) == std::string_view::npos) {
      throw ModelError(fmt::format(
          "{} has '{}': must be M (Mamba), - (MLP), E (experts) or * (attention); fix: correct it",
          config.path_of("hybrid_override_pattern"), shown_text({&letter, 1})));
    }
    layers.push_back(letter == '*' ? attention : layer_without_attention());
  }
  return layers;
}

std::vector<ModelLayer> read_nemotron_nas_layers(const ConfigObject& config) {
  const int num_layers = config.required_integer("num_hidden_layers", layer_count_range);
  const int num_q_heads = config.required_integer("num_attention_heads");
  const int head_dim = head_dim_of_hidden_size(config, num_q_heads);
  const auto blocks = config.objects("block_configs");
  if (!blocks || blocks->size() != static_cast<std::size_t>(num_layers)) {
    throw ModelError(fmt::format(
        "{} has {} entries: must have one per layer, num_hidden_layers = {}; fix: correct either",
        config.path_of("block_configs"), blocks ? blocks->size() : 0, num_layers));
  }
  std::vector<ModelLayer> layers;
  for (const ConfigObject& block : *blocks) {
    layers.push_back(read_searched_layer(block, num_q_heads, head_dim));
  }
  return layers;
}

std::vector<ModelLayer> read_qwen3_next_layers(const ConfigObject& config) {
  const GroupedFamily family{.model_type = "qwen3_next", .default_head_dim = 256};
  if (config.mentions("layer_types")) {
    return read_grouped_layers(config, family);
  }
  const int num_layers = config.required_integer("num_hidden_layers", layer_count_range);
  const int interval = config.integer("full_attention_interval", layer_count_range).value_or(4);
  ModelLayer attention = read_grouped_layer(config, family);
  attention.reasons["mask"] =
      fmt::format("causal: each {}th layer, the others are linear", interval);
  std::vector<ModelLayer> layers;
  for (int index = 0; index < num_layers; ++index) {
    layers.push_back((index + 1) % interval == 0 ? attention : layer_without_attention());
  }
  return layers;
}

}  // namespace attnjit
