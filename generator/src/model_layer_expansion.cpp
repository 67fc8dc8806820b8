#include "model_layer_expansion.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace attnjit {
namespace {

using Reasons = std::map<std::string, std::string>;

bool can_share_heads(const ModelLayer& layer, int ranks) {
  if (layer.kind == LayerKind::no_attention) {
    return true;
  }
  const bool shares_kv = layer.kind == LayerKind::latent || layer.num_kv_heads % ranks == 0 ||
                         ranks % layer.num_kv_heads == 0;
  return layer.num_q_heads % ranks == 0 && shares_kv;
}

bool is_fp8(DataType type) {
  return type == DataType::fp8_e4m3 || type == DataType::fp8_e5m2;
}

void set_dtypes(AttentionDescriptor& descriptor, Reasons& reasons, const PlanOptions& options) {
  descriptor.dtype_q = options.dtype;
  descriptor.dtype_kv = options.dtype_kv;
  descriptor.dtype_out = options.dtype;
  reasons["dtype_q"] = "dtype of the plan";
  reasons["dtype_kv"] = "KV cache dtype of the plan";
  reasons["dtype_out"] = "dtype of the plan";
  if (is_fp8(options.dtype_kv)) {
    descriptor.scales_kv = ScaleGrain::per_tensor;
    reasons["scales_kv"] = "an fp8 cache has one scale for K and one for V";
  }
}

void set_masking(AttentionDescriptor& descriptor, const ModelLayer& layer, Reasons& reasons) {
  descriptor.mask = layer.mask;
  descriptor.chunk_size = layer.chunk_size;
  if (layer.mask == MaskKind::sliding_window) {
    descriptor.window_left = layer.window_left;
    descriptor.window_right = 0;
    reasons["window_right"] = "causal: nothing after the query's own token";
  } else {
    reasons.try_emplace("window_left", "no sliding window");
  }
  descriptor.score_modifier = layer.score_modifier;
  descriptor.has_sinks = layer.has_sinks;
}

void set_paged(AttentionDescriptor& descriptor, Reasons& reasons, const PlanOptions& options) {
  descriptor.kv_layout = KvLayout::paged;
  descriptor.kv_layout_tag = KvLayoutTag::nhd;
  descriptor.page_size = options.page_size;
  reasons["kv_layout"] = "the KV cache is paged";
  reasons["page_size"] = "page size of the plan, tokens";
}

// K and V that this call computed itself: not in the cache, so in the type of q.
void set_ragged(AttentionDescriptor& descriptor, Reasons& reasons, const PlanOptions& options) {
  descriptor.kv_layout = KvLayout::ragged;
  descriptor.kv_layout_tag = KvLayoutTag::thd;
  descriptor.page_size = 0;
  descriptor.dtype_kv = options.dtype;
  descriptor.scales_kv = ScaleGrain::none;
  reasons["dtype_kv"] = "K and V are activations, in the dtype of the plan, not the cache's";
  reasons["kv_layout"] = "K and V of all requests lie end to end";
  reasons["page_size"] = "nothing is paged";
  reasons.erase("scales_kv");
}

void set_max_seqlen_q(AttentionDescriptor& descriptor, Phase phase, Reasons& reasons,
                      const PlanOptions& options) {
  descriptor.max_seqlen_q = phase == Phase::decode ? options.max_seqlen_q : 0;
  reasons["max_seqlen_q"] = phase == Phase::decode ? "query tokens per request of the plan"
                                                   : "prefill: any number of query tokens";
}

void set_query_heads(AttentionDescriptor& descriptor, const ModelLayer& layer, Reasons& reasons,
                     int ranks) {
  descriptor.num_q_heads = layer.num_q_heads / ranks;
  if (ranks > 1) {
    reasons["num_q_heads"] += fmt::format(" / tp {}", ranks);
  }
}

void set_grouped(AttentionDescriptor& descriptor, const ModelLayer& layer, Phase phase,
                 Reasons& reasons, const PlanOptions& options) {
  const int ranks = options.tensor_parallel;
  const bool is_decode = phase == Phase::decode;
  descriptor.operation = is_decode ? Operation::decode : Operation::prefill_kvcache;
  reasons["operation"] = is_decode ? "decode over the paged cache"
                                   : "prefill over the paged cache, cached prefix first";
  descriptor.num_kv_heads = std::max(1, layer.num_kv_heads / ranks);
  if (ranks > layer.num_kv_heads) {
    reasons["num_kv_heads"] += fmt::format(": fewer than tp {}, each rank keeps one", ranks);
  } else if (ranks > 1) {
    reasons["num_kv_heads"] += fmt::format(" / tp {}", ranks);
  }
  descriptor.head_dim_qk = layer.head_dim_qk;
  descriptor.head_dim_v = layer.head_dim_v;
  descriptor.value_source = ValueSource::separate;
  reasons["value_source"] = "V has a cache of its own";
  set_paged(descriptor, reasons, options);
}

// The absorbed form: queries take over the up-projection of K, and every head reads one latent row.
void set_absorbed(AttentionDescriptor& descriptor, const ModelLayer& layer, Reasons& reasons) {
  descriptor.num_kv_heads = 1;
  descriptor.head_dim_qk = layer.kv_lora_rank + layer.rope_dim;
  descriptor.head_dim_v = layer.kv_lora_rank;
  descriptor.value_source = ValueSource::prefix_of_k;
  reasons["num_kv_heads"] = "MLA caches one latent row per token, on every rank";
  reasons["head_dim_qk"] =
      fmt::format("kv_lora_rank {} + qk_rope_head_dim {}", layer.kv_lora_rank, layer.rope_dim);
  reasons["head_dim_v"] = fmt::format("kv_lora_rank {}", layer.kv_lora_rank);
  reasons["value_source"] = "MLA: V is the latent part of K";
}

// Long rows of the latent are projected up to one K and V per query head: fewer FLOPs than
// absorbed.
void set_projected_up(AttentionDescriptor& descriptor, const ModelLayer& layer, Reasons& reasons,
                      const PlanOptions& options) {
  descriptor.operation = Operation::prefill;
  descriptor.num_kv_heads = descriptor.num_q_heads;
  descriptor.head_dim_qk = layer.head_dim_qk;
  descriptor.head_dim_v = layer.head_dim_v;
  descriptor.value_source = ValueSource::separate;
  reasons["operation"] = "MLA prefill: K and V projected up from the latent";
  reasons["num_kv_heads"] = "MLA prefill: one K and V per query head";
  reasons["value_source"] = "MLA prefill: V is projected up apart from K";
  set_ragged(descriptor, reasons, options);
}

void set_token_sparse(AttentionDescriptor& descriptor, const ModelLayer& layer, Phase phase,
                      Reasons& reasons, const PlanOptions& options) {
  set_absorbed(descriptor, layer, reasons);
  descriptor.sparsity = Sparsity::token;
  descriptor.topk = layer.topk;
  descriptor.mask = MaskKind::none;
  reasons["sparsity"] = "an indexer chooses the tokens a query reads";
  reasons["mask"] = "the index list names visible tokens only";
  if (phase == Phase::prefill) {
    descriptor.operation = Operation::sparse_mla_prefill;
    reasons["operation"] = "token-sparse MLA prefill";
    set_ragged(descriptor, reasons, options);
    return;
  }
  descriptor.operation = Operation::sparse_mla_decode;
  reasons["operation"] = "token-sparse MLA decode";
  set_paged(descriptor, reasons, options);
  if (options.dtype_kv == DataType::fp8_e4m3) {
    descriptor.kv_encoding = KvEncoding::fp8_656;
    descriptor.scales_kv = ScaleGrain::none;
    reasons["kv_encoding"] = "an fp8 latent row holds its rope in bf16 and a scale per 128 columns";
    reasons.erase("scales_kv");
  }
}

void set_latent(AttentionDescriptor& descriptor, const ModelLayer& layer, Phase phase,
                Reasons& reasons, const PlanOptions& options) {
  if (layer.topk > 0) {
    set_token_sparse(descriptor, layer, phase, reasons, options);
  } else if (phase == Phase::prefill) {
    set_projected_up(descriptor, layer, reasons, options);
  } else {
    descriptor.operation = Operation::decode;
    reasons["operation"] = "MLA decode over the paged latent cache";
    set_absorbed(descriptor, layer, reasons);
    set_paged(descriptor, reasons, options);
  }
}

std::string shown(int value) {
  return std::to_string(value);
}
std::string shown(bool value) {
  return value ? "true" : "false";
}
template <typename Enum>
std::string shown(Enum value) {
  return std::string(to_string(value));
}

std::string shown(const std::string& text) {
  return text;
}

// In the descriptor's order; every entry of `reasons` is shown exactly once.
std::vector<AxisReason> list_reasons(const PlannedDescriptor& planned, const Reasons& reasons) {
  std::vector<AxisReason> listed;
  for_each_field(planned.descriptor, [&](const char* field, const auto& value) {
    if (const auto found = reasons.find(field); found != reasons.end()) {
      listed.push_back({field, shown(value), found->second});
    }
  });
  listed.push_back(
      {"softmax_scale", fmt::format("{}", planned.softmax_scale), reasons.at("softmax_scale")});
  if (planned.softcap > 0) {
    listed.push_back({"softcap", fmt::format("{}", planned.softcap), reasons.at("softcap")});
  }
  return listed;
}

}  // namespace

void check_tensor_parallel(const std::vector<ModelLayer>& layers, int tensor_parallel) {
  const auto is_legal = [&](int ranks) {
    return std::all_of(layers.begin(), layers.end(),
                       [ranks](const ModelLayer& layer) { return can_share_heads(layer, ranks); });
  };
  if (is_legal(tensor_parallel)) {
    return;
  }
  const ModelLayer& layer = *std::find_if(
      layers.begin(), layers.end(),
      [&](const ModelLayer& each) { return !can_share_heads(each, tensor_parallel); });
  std::vector<int> legal;
  for (int ranks = 1; ranks <= layer.num_q_heads; ++ranks) {
    if (is_legal(ranks)) {
      legal.push_back(ranks);
    }
  }
  const std::string kv_heads =
      layer.kind == LayerKind::latent
          ? ""
          : fmt::format(" and divide or be a multiple of num_key_value_heads {}",
                        layer.num_kv_heads);
  throw ModelError(
      fmt::format("tensor_parallel = {}: must divide num_attention_heads {}{}; fix: use one of {}",
                  tensor_parallel, layer.num_q_heads, kv_heads, fmt::join(legal, ", ")));
}

PlannedDescriptor expand_layer(const ModelLayer& layer, Phase phase, const PlanOptions& options) {
  PlannedDescriptor planned;
  planned.phase = phase;
  planned.softmax_scale = layer.softmax_scale;
  planned.softcap = layer.softcap;
  Reasons reasons = layer.reasons;
  reasons["returns_lse"] = "partial results are merged by their LSE";
  planned.descriptor.returns_lse = true;
  planned.descriptor.batch_invariant = options.batch_invariant;
  if (options.batch_invariant) {
    reasons["batch_invariant"] = "the plan asks for results that do not depend on the batch";
  }
  set_dtypes(planned.descriptor, reasons, options);
  set_masking(planned.descriptor, layer, reasons);
  set_max_seqlen_q(planned.descriptor, phase, reasons, options);
  set_query_heads(planned.descriptor, layer, reasons, options.tensor_parallel);
  if (layer.kind == LayerKind::latent) {
    set_latent(planned.descriptor, layer, phase, reasons, options);
  } else {
    set_grouped(planned.descriptor, layer, phase, reasons, options);
  }
  planned.reasons = list_reasons(planned, reasons);
  return planned;
}

}  // namespace attnjit
