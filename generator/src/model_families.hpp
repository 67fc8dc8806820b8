// Architecture families: which reader understands a model_type. A reader turns the language model's
// configuration into its layers, in order. Private; pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model_config.hpp"
#include "model_layer.hpp"

namespace attnjit {

// How a family decides which layers have a sliding window, where config.json has no layer_types.
enum class WindowRule {
  never,           // no window; a sliding_window field is not understood
  always,          // every layer, if sliding_window is set
  when_enabled,    // every layer, if use_sliding_window is true
  after_layer,     // layers from max_window_layers on, if use_sliding_window is true
  full_every_nth,  // every layer but each nth (n = sliding_window_pattern or the family's own)
};

enum class ScaleRule {
  inverse_sqrt_head_dim,
  query_pre_attn_scalar,  // its inverse square root
  attention_multiplier,   // the scale itself
};

// What config.json does not say, because the model's class says it. 0 = the class has no default:
// the field is required.
struct GroupedFamily {
  std::string_view model_type;
  WindowRule window_rule = WindowRule::never;
  int full_every = 0;
  ScaleRule scale_rule = ScaleRule::inverse_sqrt_head_dim;
  bool has_sinks = false;
  bool kv_heads_default_to_q_heads = false;  // num_key_value_heads absent = MHA
  int default_q_heads = 0;
  int default_kv_heads = 0;
  int default_head_dim = 0;  // instead of hidden_size / num_attention_heads
  int default_window = 0;
  int default_layers = 0;
};

// Layers of a family of the common shape (num_attention_heads, num_key_value_heads, head_dim).
std::vector<ModelLayer> read_grouped_layers(const ConfigObject& config,
                                            const GroupedFamily& family);

// Readers of the families that have a shape of their own.
std::vector<ModelLayer> read_latent_layers(const ConfigObject& config);
std::vector<ModelLayer> read_sparse_latent_layers(const ConfigObject& config);
std::vector<ModelLayer> read_baichuan_layers(const ConfigObject& config);
std::vector<ModelLayer> read_chatglm_layers(const ConfigObject& config);
std::vector<ModelLayer> read_falcon_layers(const ConfigObject& config);
std::vector<ModelLayer> read_llama4_layers(const ConfigObject& config);
std::vector<ModelLayer> read_nemotron_h_layers(const ConfigObject& config);
std::vector<ModelLayer> read_nemotron_nas_layers(const ConfigObject& config);
std::vector<ModelLayer> read_qwen3_next_layers(const ConfigObject& config);

// Throws ModelError naming the known model types if `model_type` is none of them.
std::vector<ModelLayer> read_model_layers(const ConfigObject& config,
                                          const std::string& model_type);

// Steps that several readers share.
constexpr IntegerRange layer_count_range{1, 4096};
ModelLayer read_grouped_layer(const ConfigObject& config, const GroupedFamily& family);
void set_head_counts(ModelLayer& layer, int num_q_heads, const std::string& q_reason,
                     int num_kv_heads, const std::string& kv_reason);
void set_head_dim(ModelLayer& layer, int head_dim, const std::string& reason);
// 1 / sqrt(head_dim), causal, neither modifier nor sinks; the head dimension must be set.
void set_plain_causal(ModelLayer& layer);
void set_window(ModelLayer& layer, const ConfigObject& config, int sliding_window,
                const std::string& reason);
// hidden_size / heads; throws ModelError where it is not whole.
int head_dim_of_hidden_size(const ConfigObject& config, int num_q_heads);

}  // namespace attnjit
