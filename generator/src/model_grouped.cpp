#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "attnjit/model_plan.hpp"
#include "attnjit/shown_text.hpp"
#include "model_families.hpp"

namespace attnjit {
namespace {

constexpr IntegerRange window_range{1, 0x7fffffff};

// A field, or what the model's class takes for it where config.json is silent.
struct FieldOrDefault {
  int value = 0;
  std::string reason;
};

FieldOrDefault read_or_default(const ConfigObject& config, std::string_view name, int fallback,
                               IntegerRange range = {}) {
  if (fallback == 0 || config.integer(name, range)) {
    const int value = config.required_integer(name, range);
    return {value, fmt::format("{} {}", config.path_of(name), value)};
  }
  return {fallback,
          fmt::format("{} absent: the model class's default {}", config.path_of(name), fallback)};
}

FieldOrDefault read_kv_heads(const ConfigObject& config, const GroupedFamily& family,
                             int num_q_heads) {
  if (family.kv_heads_default_to_q_heads && !config.integer("num_key_value_heads")) {
    return {num_q_heads, "num_key_value_heads absent: one kv head per query head"};
  }
  return read_or_default(config, "num_key_value_heads", family.default_kv_heads);
}

void read_head_dim(ModelLayer& layer, const ConfigObject& config, const GroupedFamily& family) {
  if (const std::optional<int> head_dim = config.integer("head_dim")) {
    set_head_dim(layer, *head_dim, fmt::format("{} {}", config.path_of("head_dim"), *head_dim));
  } else if (family.default_head_dim > 0) {
    set_head_dim(
        layer, family.default_head_dim,
        fmt::format("head_dim absent: the model class's default {}", family.default_head_dim));
  } else {
    const int head_dim_of_hidden = head_dim_of_hidden_size(config, layer.num_q_heads);
    set_head_dim(layer, head_dim_of_hidden,
                 fmt::format("hidden_size {} / num_attention_heads {}",
                             config.required_integer("hidden_size"), layer.num_q_heads));
  }
}

double required_positive_number(const ConfigObject& config, std::string_view name) {
  const std::optional<double> value = config.number(name);
  if (!value || *value <= 0) {
    throw ModelError(
        fmt::format("{} = {}: must be a number above 0, for it decides the softmax scale; fix: set "
                    "it as in the model's published config.json",
                    config.path_of(name), value ? fmt::format("{}", *value) : "missing"));
  }
  return *value;
}

void read_scale(ModelLayer& layer, const ConfigObject& config, const GroupedFamily& family) {
  switch (family.scale_rule) {
    case ScaleRule::inverse_sqrt_head_dim:
      return;  // as set_plain_causal left it
    case ScaleRule::query_pre_attn_scalar: {
      const double scalar = config.mentions("query_pre_attn_scalar")
                                ? required_positive_number(config, "query_pre_attn_scalar")
                                : 256.0;  // the default of Gemma2Config and Gemma3TextConfig
      layer.softmax_scale = 1.0 / std::sqrt(scalar);
      layer.reasons["softmax_scale"] = fmt::format("1 / sqrt(query_pre_attn_scalar {})", scalar);
      return;
    }
    case ScaleRule::attention_multiplier:
      layer.softmax_scale = required_positive_number(config, "attention_multiplier");
      layer.reasons["softmax_scale"] = "attention_multiplier, not 1 / sqrt(head_dim)";
      return;
  }
}

void read_softcap(ModelLayer& layer, const ConfigObject& config) {
  const std::optional<double> softcap = config.number("attn_logit_softcapping");
  if (!softcap) {
    return;
  }
  layer.softcap = required_positive_number(config, "attn_logit_softcapping");
  layer.score_modifier = ScoreModifier::softcap;
  layer.reasons["score_modifier"] = fmt::format("attn_logit_softcapping {}", layer.softcap);
  layer.reasons["softcap"] = "attn_logit_softcapping";
}

struct WindowChoice {
  bool is_local = false;
  std::string reason;
};

WindowChoice choose_if_enabled(const ConfigObject& config, const WindowChoice& enabled) {
  return config.boolean("use_sliding_window").value_or(false)
             ? enabled
             : WindowChoice{false, "causal: use_sliding_window is not set"};
}

WindowChoice choose_window(const ConfigObject& config, WindowRule rule, int index, int full_every) {
  switch (rule) {
    case WindowRule::never:
      return {false, "causal: this model_type has no window"};
    case WindowRule::always:
      return {true, "every layer of this model_type has the window"};
    case WindowRule::when_enabled:
      return choose_if_enabled(config, {true, "use_sliding_window true"});
    case WindowRule::after_layer: {
      // Absent only where the window is off, and then it does not matter.
      const int first = config.integer("max_window_layers", {0, 0x7fffffff}).value_or(0);
      return choose_if_enabled(
          config, {index >= first, fmt::format("layer {}, max_window_layers {}", index, first)});
    }
    case WindowRule::full_every_nth: {
      const bool is_full = (index + 1) % full_every == 0;
      return {!is_full, fmt::format("{}: every {} layers one is full, the others are local",
                                    is_full ? "causal" : "local", full_every)};
    }
  }
  return {};
}

// The window of the model's local layers; 0 if config.json switches it off.
FieldOrDefault read_window(const ConfigObject& config, const GroupedFamily& family) {
  if (config.mentions("sliding_window") && !config.integer("sliding_window", window_range)) {
    return {};
  }
  if (!config.mentions("sliding_window") && family.default_window == 0) {
    return {};
  }
  return read_or_default(config, "sliding_window", family.default_window, window_range);
}

void apply_layer_type(ModelLayer& layer, const ConfigObject& config, const GroupedFamily& family,
                      const std::string& type) {
  const std::string reason = fmt::format("layer_types says {}", type);
  if (type == "full_attention") {
    layer.reasons["mask"] = reason;
  } else if (type == "linear_attention") {
    layer.kind = LayerKind::no_attention;
  } else if (type == "sliding_attention") {
    const FieldOrDefault window = read_window(config, family);
    if (window.value == 0) {
      throw ModelError(
          fmt::format("{} is missing: layer_types names sliding_attention layers; fix: give their "
                      "window in tokens",
                      config.path_of("sliding_window")));
    }
    set_window(layer, config, window.value, reason);
  } else {
    throw ModelError(fmt::format(
        "{} has \"{}\": must be full_attention, sliding_attention or linear_attention for this "
        "model_type; fix: plan the layers of that kind by hand, with attention descriptors",
        config.path_of("layer_types"), shown_text(type)));
  }
}

void apply_layer_types(std::vector<ModelLayer>& layers, const ConfigObject& config,
                       const GroupedFamily& family, const std::vector<std::string>& types) {
  if (types.size() != layers.size()) {
    throw ModelError(fmt::format(
        "{} has {} entries: must have one per layer, num_hidden_layers = {}; fix: correct either",
        config.path_of("layer_types"), types.size(), layers.size()));
  }
  for (std::size_t index = 0; index < layers.size(); ++index) {
    apply_layer_type(layers[index], config, family, types[index]);
  }
}

void apply_window_rule(std::vector<ModelLayer>& layers, const ConfigObject& config,
                       const GroupedFamily& family) {
  if (family.window_rule == WindowRule::never) {
    return;
  }
  const FieldOrDefault window = read_window(config, family);
  int full_every = family.full_every;
  if (family.window_rule == WindowRule::full_every_nth) {
    full_every = config.integer("sliding_window_pattern", layer_count_range).value_or(full_every);
  }
  for (std::size_t index = 0; index < layers.size(); ++index) {
    const WindowChoice choice =
        choose_window(config, family.window_rule, static_cast<int>(index), full_every);
    if (!choice.is_local) {
      layers[index].reasons["mask"] = choice.reason;
    } else if (window.value > 0) {
      set_window(layers[index], config, window.value, choice.reason);
    } else {
      layers[index].reasons["mask"] = "causal: sliding_window is null or absent";
    }
  }
}

}  // namespace

int head_dim_of_hidden_size(const ConfigObject& config, int num_q_heads) {
  const int hidden_size = config.required_integer("hidden_size");
  if (hidden_size % num_q_heads != 0) {
    throw ModelError(
        fmt::format("{} = {}: not a multiple of num_attention_heads {}, so the head dimension "
                    "cannot be derived; fix: give head_dim",
                    config.path_of("hidden_size"), hidden_size, num_q_heads));
  }
  return hidden_size / num_q_heads;
}

void set_head_counts(ModelLayer& layer, int num_q_heads, const std::string& q_reason,
                     int num_kv_heads, const std::string& kv_reason) {
  if (num_q_heads % num_kv_heads != 0) {
    throw ModelError(
        fmt::format("num_key_value_heads = {}: must divide num_attention_heads {}, for each kv "
                    "head serves the same number of query heads; fix: correct either",
                    num_kv_heads, num_q_heads));
  }
  layer.num_q_heads = num_q_heads;
  layer.num_kv_heads = num_kv_heads;
  layer.reasons["num_q_heads"] = q_reason;
  layer.reasons["num_kv_heads"] = kv_reason;
}

void set_head_dim(ModelLayer& layer, int head_dim, const std::string& reason) {
  layer.head_dim_qk = head_dim;
  layer.head_dim_v = head_dim;
  layer.reasons["head_dim_qk"] = reason;
  layer.reasons["head_dim_v"] = reason;
}

void set_plain_causal(ModelLayer& layer) {
  layer.softmax_scale = 1.0 / std::sqrt(layer.head_dim_qk);
  layer.reasons["softmax_scale"] = fmt::format("1 / sqrt(head dimension {})", layer.head_dim_qk);
  layer.reasons["mask"] = "decoder: a token sees itself and what is before it";
  layer.reasons["score_modifier"] = "config.json asks for none";
  layer.reasons["has_sinks"] = "this model_type has none";
}

// Hugging Face counts the query's own token in sliding_window: a query at position i sees the keys
// i - sliding_window + 1 … i. The descriptor counts the keys before the diagonal, hence the - 1.
void set_window(ModelLayer& layer, const ConfigObject& config, int sliding_window,
                const std::string& reason) {
  const std::optional<int> most_positions =
      config.integer("max_position_embeddings", {1, 0x7fffffff});
  if (most_positions && sliding_window >= *most_positions) {
    layer.reasons["mask"] =
        fmt::format("causal: sliding_window {} never hides a key within max_position_embeddings {}",
                    sliding_window, *most_positions);
    return;
  }
  layer.mask = MaskKind::sliding_window;
  layer.window_left = sliding_window - 1;
  layer.reasons["mask"] = reason;
  layer.reasons["window_left"] =
      fmt::format("sliding_window {} counts the query's own token", sliding_window);
}

ModelLayer read_grouped_layer(const ConfigObject& config, const GroupedFamily& family) {
  ModelLayer layer;
  const FieldOrDefault q_heads =
      read_or_default(config, "num_attention_heads", family.default_q_heads);
  const FieldOrDefault kv_heads = read_kv_heads(config, family, q_heads.value);
  set_head_counts(layer, q_heads.value, q_heads.reason, kv_heads.value, kv_heads.reason);
  read_head_dim(layer, config, family);
  set_plain_causal(layer);
  read_scale(layer, config, family);
  read_softcap(layer, config);
  if (family.has_sinks) {
    layer.has_sinks = true;
    layer.reasons["has_sinks"] = "this model_type has a learned sink logit per query head";
  }
  return layer;
}

std::vector<ModelLayer> read_grouped_layers(const ConfigObject& config,
                                            const GroupedFamily& family) {
  const FieldOrDefault count =
      read_or_default(config, "num_hidden_layers", family.default_layers, layer_count_range);
  std::vector<ModelLayer> layers(static_cast<std::size_t>(count.value),
                                 read_grouped_layer(config, family));
  if (const auto types = config.texts("layer_types")) {
    // layer_types says layer by layer what these say in general.
    config.integer("sliding_window_pattern", layer_count_range);
    config.integer("full_attention_interval", layer_count_range);
    config.integer("sliding_window", window_range);
    config.boolean("use_sliding_window");
    apply_layer_types(layers, config, family, *types);
  } else {
    apply_window_rule(layers, config, family);
  }
  return layers;
}

}  // namespace attnjit
