#include <fmt/format.h>

#include "attnjit/model_plan.hpp"
#include "model_families.hpp"

namespace attnjit {
namespace {

// The first of two names that is there: older files use the second.
std::string name_in_use(const ConfigObject& config, const char* name, const char* older_name) {
  return config.mentions(name) || !config.mentions(older_name) ? name : older_name;
}

std::vector<ModelLayer> repeat(const ModelLayer& layer, int count) {
  return std::vector<ModelLayer>(static_cast<std::size_t>(count), layer);
}

void set_alibi(ModelLayer& layer, const std::string& reason) {
  layer.score_modifier = ScoreModifier::alibi;
  layer.reasons["score_modifier"] = reason;
}

}  // namespace

// Baichuan-13B has ALiBi where the 7B has rotary embeddings; no field says so, the hidden size
// does.
std::vector<ModelLayer> read_baichuan_layers(const ConfigObject& config) {
  const GroupedFamily family{.model_type = "baichuan", .kv_heads_default_to_q_heads = true};
  std::vector<ModelLayer> layers = read_grouped_layers(config, family);
  constexpr int hidden_size_of_7b = 4096;
  if (config.required_integer("hidden_size") != hidden_size_of_7b) {
    for (ModelLayer& layer : layers) {
      set_alibi(layer, "hidden_size is not that of Baichuan-7B: the 13B models use ALiBi");
    }
  }
  return layers;
}

std::vector<ModelLayer> read_chatglm_layers(const ConfigObject& config) {
  const int num_layers = config.required_integer("num_layers", layer_count_range);
  const int num_q_heads = config.required_integer("num_attention_heads");
  const bool is_grouped = config.boolean("multi_query_attention").value_or(false);
  const int num_kv_heads =
      is_grouped ? config.required_integer("multi_query_group_num") : num_q_heads;
  ModelLayer layer;
  set_head_counts(layer, num_q_heads, fmt::format("num_attention_heads {}", num_q_heads),
                  num_kv_heads,
                  is_grouped ? fmt::format("multi_query_group_num {}", num_kv_heads)
                             : "multi_query_attention is not set: one kv head per query head");
  const int head_dim = config.required_integer("kv_channels");
  set_head_dim(layer, head_dim, fmt::format("kv_channels {}", head_dim));
  set_plain_causal(layer);
  return repeat(layer, num_layers);
}

std::vector<ModelLayer> read_falcon_layers(const ConfigObject& config) {
  const std::string heads_name = name_in_use(config, "num_attention_heads", "n_head");
  const std::string layers_name = name_in_use(config, "num_hidden_layers", "n_layer");
  const int num_q_heads = config.required_integer(heads_name);
  int num_kv_heads = num_q_heads;
  std::string kv_reason = "neither new_decoder_architecture nor multi_query: one per query head";
  if (config.boolean("new_decoder_architecture").value_or(false)) {
    const std::string kv_name = name_in_use(config, "num_kv_heads", "n_head_kv");
    num_kv_heads = config.required_integer(kv_name);
    kv_reason = fmt::format("{} {}", kv_name, num_kv_heads);
  } else if (config.boolean("multi_query").value_or(true)) {
    num_kv_heads = 1;
    kv_reason = "multi_query: one kv head, whatever num_kv_heads says";
    config.integer("num_kv_heads");
    config.integer("n_head_kv");
  }
  ModelLayer layer;
  set_head_counts(layer, num_q_heads, fmt::format("{} {}", heads_name, num_q_heads), num_kv_heads,
                  kv_reason);
  set_head_dim(layer, head_dim_of_hidden_size(config, num_q_heads),
               fmt::format("hidden_size / {} {}", heads_name, num_q_heads));
  set_plain_causal(layer);
  if (config.boolean("alibi").value_or(false)) {
    set_alibi(layer, "alibi true");
  }
  return repeat(layer, config.required_integer(layers_name, layer_count_range));
}

}  // namespace attnjit
