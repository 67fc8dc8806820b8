#include "attnjit/model_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model_config.hpp"
#include "model_families.hpp"
#include "model_layer_expansion.hpp"
#include "model_unread_fields.hpp"

namespace attnjit {
namespace {

void require_at_least_one(std::string_view option, int value) {
  if (value < 1) {
    throw ModelError(
        fmt::format("{} = {}: must be 1 or more; fix: give a positive number", option, value));
  }
}

void check_dtype(std::string_view option, DataType type, std::initializer_list<DataType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), type) != allowed.end()) {
    return;
  }
  std::vector<std::string_view> names;
  for (const DataType each : allowed) {
    names.push_back(to_string(each));
  }
  throw ModelError(fmt::format("{} = {}: must be one of {}; fix: choose one of them", option,
                               to_string(type), fmt::join(names, ", ")));
}

void check_options(const PlanOptions& options) {
  require_at_least_one("tensor_parallel", options.tensor_parallel);
  require_at_least_one("page_size", options.page_size);
  require_at_least_one("max_seqlen_q", options.max_seqlen_q);
  check_dtype("dtype", options.dtype, {DataType::bf16, DataType::fp16});
  check_dtype("dtype_kv", options.dtype_kv,
              {DataType::bf16, DataType::fp16, DataType::fp8_e4m3, DataType::fp8_e5m2});
  if (options.phases.empty()) {
    throw ModelError("phases is empty: must name decode, prefill or both; fix: give one");
  }
}

// Layers whose kernel and run-time values agree share an entry.
bool are_equal(const PlannedDescriptor& left, const PlannedDescriptor& right) {
  return left.phase == right.phase && left.descriptor == right.descriptor &&
         left.softmax_scale == right.softmax_scale && left.softcap == right.softcap;
}

void merge(std::vector<PlannedDescriptor>& planned, PlannedDescriptor added, int layer) {
  const auto equal = std::find_if(planned.begin(), planned.end(),
                                  [&](const auto& existing) { return are_equal(existing, added); });
  if (equal == planned.end()) {
    added.layers = {layer};
    planned.push_back(std::move(added));
  } else if (equal->layers.back() != layer) {  // a phase that is asked for twice is planned once
    equal->layers.push_back(layer);
  }
}

}  // namespace

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::decode:
      return "decode";
    case Phase::prefill:
      return "prefill";
  }
  return "";
}

ModelPlan plan_model(std::string_view config_json, const PlanOptions& options) {
  check_options(options);
  const ModelConfig config = parse_model_config(config_json);
  const std::vector<ModelLayer> layers = read_model_layers(config.language, config.model_type);
  check_tensor_parallel(layers, options.tensor_parallel);

  ModelPlan plan;
  plan.model_type = config.model_type;
  plan.num_layers = static_cast<int>(layers.size());
  for (int index = 0; index < plan.num_layers; ++index) {
    const ModelLayer& layer = layers[static_cast<std::size_t>(index)];
    if (layer.kind == LayerKind::no_attention) {
      plan.layers_without_attention.push_back(index);
      continue;
    }
    for (const Phase phase : options.phases) {
      merge(plan.planned, expand_layer(layer, phase, options), index);
    }
  }
  plan.unread_fields = find_unread_fields(config);
  return plan;
}

}  // namespace attnjit
