// One layer of a model, as its config.json describes it: before tensor parallelism, before a phase
// and its descriptor are chosen. Between the family readers and the expansion. A plain value.
#pragma once

#include <map>
#include <string>

#include "attnjit/attention_descriptor.hpp"

namespace attnjit {

enum class LayerKind {
  no_attention,  // no softmax attention: linear, recurrent, convolutional or removed
  grouped,       // MHA, GQA, MQA: K and V cached per kv head
  latent,        // MLA: one latent row per token is cached
};

struct ModelLayer {
  LayerKind kind = LayerKind::grouped;
  int num_q_heads = 0;
  int num_kv_heads = 0;  // grouped only
  int head_dim_qk = 0;   // of one head; nope + rope for latent layers
  int head_dim_v = 0;
  int kv_lora_rank = 0;  // latent only: columns of the cached latent that are V too
  int rope_dim = 0;      // latent only: columns that follow them
  int topk = 0;          // latent only: tokens chosen per query; 0 = all

  MaskKind mask = MaskKind::causal;
  int window_left = -1;
  int chunk_size = 0;
  ScoreModifier score_modifier = ScoreModifier::none;
  bool has_sinks = false;
  double softmax_scale = 0;
  double softcap = 0;

  // Why a member above has its value, by the name of the descriptor's field ("num_q_heads", …) or
  // of the run-time value ("softmax_scale", "softcap").
  std::map<std::string, std::string> reasons;
};

}  // namespace attnjit
