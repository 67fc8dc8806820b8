#include <fmt/format.h>

#include <optional>

#include "attnjit/model_plan.hpp"
#include "attnjit/shown_text.hpp"
#include "model_families.hpp"

namespace attnjit {
namespace {

// True for the layers that have rotary embeddings and see only their own chunk; the others see
// everything and scale their queries by position before the kernel (attn_temperature_tuning).
std::vector<bool> read_chunked_layers(const ConfigObject& config, int num_layers) {
  std::vector<bool> is_chunked;
  if (const auto types = config.texts("layer_types")) {
    for (const std::string& type : *types) {
      if (type != "chunked_attention" && type != "full_attention") {
        throw ModelError(fmt::format(
            "{} has \"{}\": must be chunked_attention or full_attention for this model_type; fix: "
            "correct the entry",
            config.path_of("layer_types"), shown_text(type)));
      }
      is_chunked.push_back(type == "chunked_attention");
    }
    return is_chunked;
  }
  const auto uses_rope = config.integers("no_rope_layers", {0, 1});
  if (uses_rope && !uses_rope->empty()) {
    is_chunked.assign(uses_rope->begin(), uses_rope->end());
    return is_chunked;
  }
  // Llama4TextConfig's default.
  const int interval = config.integer("no_rope_layer_interval", layer_count_range).value_or(4);
  for (int index = 0; index < num_layers; ++index) {
    is_chunked.push_back((index + 1) % interval != 0);
  }
  return is_chunked;
}

}  // namespace

std::vector<ModelLayer> read_llama4_layers(const ConfigObject& config) {
  const int num_layers = config.required_integer("num_hidden_layers", layer_count_range);
  const ModelLayer full = read_grouped_layer(config, {.model_type = "llama4_text"});
  const std::vector<bool> is_chunked = read_chunked_layers(config, num_layers);
  if (is_chunked.size() != static_cast<std::size_t>(num_layers)) {
    throw ModelError(
        fmt::format("{}: layer_types or no_rope_layers has {} entries: must have one per layer, "
                    "num_hidden_layers = {}; fix: correct either",
                    config.path_of("num_hidden_layers"), is_chunked.size(), num_layers));
  }
  std::vector<ModelLayer> layers;
  for (const bool chunked : is_chunked) {
    ModelLayer layer = full;
    if (chunked) {
      layer.mask = MaskKind::chunked_causal;
      layer.chunk_size = config.required_integer("attention_chunk_size", {1, 0x7fffffff});
      layer.reasons["mask"] = "a layer with rotary embedding sees its own chunk only";
      layer.reasons["chunk_size"] = fmt::format("attention_chunk_size {}", layer.chunk_size);
    } else {
      layer.reasons["mask"] = "causal: a layer without rotary embedding sees every chunk";
    }
    layers.push_back(layer);
  }
  return layers;
}

}  // namespace attnjit
