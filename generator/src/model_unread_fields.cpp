#include "model_unread_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "attnjit/shown_text.hpp"

namespace attnjit {
namespace {

// A field whose name holds one of these is taken to shape attention unless it is listed below.
constexpr std::array attention_words = {
    "attn",   "attention",   "head",    "window",  "rope",     "rotary",       "kv",
    "lora",   "sink",        "softcap", "mask",    "scal",     "chunk",        "alibi",
    "causal", "layer_types", "index_",  "pattern", "sparsity", "position_bias"};

// Attention-looking, yet no kernel depends on them.
constexpr std::array irrelevant_fields = {
    // Training only.
    "attention_dropout", "attn_dropout", "attn_dropout_prob", "attn_pdrop",
    "attention_probs_dropout_prob", "head_dropout",
    // Projections before and after the kernel, and normalisations of q and k.
    "attention_bias", "attention_out_bias", "attention_qkv_bias", "add_qkv_bias", "use_qkv_bias",
    "qkv_bias", "q_lora_rank", "qk_layernorm", "attn_output_gate", "num_ln_in_parallel_attn",
    "parallel_attn", "lm_head_bias",
    // Rotary embedding: applied to q and k before the kernel.
    "rope_theta", "rope_scaling", "rope_parameters", "rope_local_base_freq", "rope_interleave",
    "rope_interleaved", "rope_ratio", "rope_pct", "rope_type", "rope_base", "partial_rotary_factor",
    "rotary", "rotary_dim", "rotary_pct", "rotary_emb_base", "original_rope",
    // Position-dependent scale of q on Llama 4's full layers: applied before the kernel.
    "attn_temperature_tuning", "attn_scale", "floor_scale",
    // Scales of embeddings, residuals, experts, logits and quantised weights.
    "routed_scaling_factor", "logit_scale", "logits_scaling", "scale_emb", "scale_depth",
    "final_logit_softcapping", "scale_fmt", "activation_scheme",
    // How an implementation computes, not what.
    "attn_implementation", "_attn_implementation", "_attn_implementation_autoset", "use_flash_attn",
    "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "scale_attn_weights",
    "apply_query_key_layer_scaling", "transformers.js_config",
    // Linear-attention, Mamba and indexer layers: not softmax attention.
    "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
    "linear_value_head_dim", "mamba_num_heads", "mamba_head_dim", "index_n_heads", "index_head_dim",
    "indexer_rope_interleave", "indexer_types",
    // Repeats of a field that is read, or in effect only together with one.
    "sliding_window_size", "max_window_layers",
    // Token ids and counts of other parts.
    "mask_token_id", "chunk_size_feed_forward", "num_nextn_predict_layers",
    "multimodal_projector_bias"};

bool looks_like_attention(std::string_view name) {
  return std::any_of(attention_words.begin(), attention_words.end(),
                     [&](const char* word) { return name.find(word) != std::string_view::npos; });
}

bool is_irrelevant(std::string_view name) {
  return std::find(irrelevant_fields.begin(), irrelevant_fields.end(), name) !=
         irrelevant_fields.end();
}

// "false" switches a feature off, except causality: every plan is causal, so a model that is not
// asks for something.
bool asks_for_nothing(std::string_view name, const nlohmann::json& value) {
  const bool is_empty = value.is_structured() && value.empty();
  const bool is_off = value.is_boolean() && !value.get<bool>();
  const bool is_causality = name.find("causal") != std::string_view::npos;
  return value.is_null() || is_empty || (is_off && !is_causality);
}

// The dtype comes from the plan's options; one that no option could be set to goes unheeded.
bool is_unknown_dtype(std::string_view name, const nlohmann::json& value) {
  constexpr std::array known = {"float16", "bfloat16", "float32", "auto"};
  return (name == "torch_dtype" || name == "dtype") && !value.is_null() &&
         std::find(known.begin(), known.end(), value) == known.end();
}

// The fields of an object that no reader saw, such as quantization_config.
void collect_nested(const nlohmann::json& object, const std::string& path,
                    std::vector<std::string>& unread) {
  for (const auto& [name, value] : object.items()) {
    const std::string full_name = fmt::format("{}.{}", path, shown_text(name));
    if (is_irrelevant(name) || asks_for_nothing(name, value)) {
      continue;
    }
    if (looks_like_attention(name)) {
      unread.push_back(full_name);
    } else if (value.is_object()) {
      collect_nested(value, full_name, unread);
    }
  }
}

// The nested configurations of other towers (vision_config, audio_config, …) have attention of
// their own, which is not planned here; quantization_config concerns the language model.
bool is_other_tower(std::string_view name) {
  return name.ends_with("_config") && name != "quantization_config";
}

void collect(const ConfigObject& config, std::vector<std::string>& unread) {
  for (const auto& [name, value] : config.fields().items()) {
    if (is_unknown_dtype(name, value)) {
      unread.push_back(config.path_of(name));
      continue;
    }
    if (config.names_read().contains(name) || is_irrelevant(name) ||
        asks_for_nothing(name, value)) {
      continue;
    }
    if (value.is_object() && !looks_like_attention(name)) {
      if (!is_other_tower(name)) {
        collect_nested(value, config.path_of(shown_text(name)), unread);
      }
    } else if (looks_like_attention(name)) {
      unread.push_back(config.path_of(shown_text(name)));
    }
  }
}

}  // namespace

std::vector<std::string> find_unread_fields(const ModelConfig& config) {
  std::vector<std::string> unread;
  collect(config.language, unread);
  if (config.is_nested) {
    collect(config.whole, unread);
  }
  std::sort(unread.begin(), unread.end());
  return unread;
}

}  // namespace attnjit
