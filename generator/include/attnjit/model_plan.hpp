// A model's config.json -> the distinct attention descriptors its layers need: what `attnjit plan`
// prints and `attnjit warm` compiles. Pure functions, thread-safe.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attnjit/attention_descriptor.hpp"

namespace attnjit {

enum class Phase { decode, prefill };
std::string_view to_string(Phase);

struct PlanOptions {
  int tensor_parallel = 1;             // ranks that share the heads
  DataType dtype = DataType::bf16;     // of q and out
  DataType dtype_kv = DataType::bf16;  // of the KV cache
  int page_size = 64;                  // tokens
  int max_seqlen_q = 1;                // query tokens per request in decode
  bool batch_invariant = false;        // results that do not depend on the batch, to the bit
  std::vector<Phase> phases = {Phase::decode, Phase::prefill};
};

// Why an axis of a descriptor, or a run-time value, is what it is.
struct AxisReason {
  std::string field;  // descriptor field, "softmax_scale" or "softcap"
  std::string value;
  std::string reason;  // e.g. "num_attention_heads 128 / tp 8"
};

struct PlannedDescriptor {
  AttentionDescriptor descriptor;
  Phase phase = Phase::decode;
  std::vector<int> layers;   // indices of the layers that use it, ascending
  double softmax_scale = 0;  // what the model passes at run time
  double softcap = 0;        // the c of c * tanh(score / c); 0 = none
  std::vector<AxisReason> reasons;
};

struct ModelPlan {
  std::string model_type;  // of the language model, as in config.json
  int num_layers = 0;
  std::vector<PlannedDescriptor> planned;  // distinct, in order of first layer
  std::vector<int> layers_without_attention;
  std::vector<std::string>
      unread_fields;  // attention-looking fields of config.json that were not used
};

// Thrown for a config.json that cannot be planned; the message names field, value and fix.
class ModelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Plans the model whose config.json text is given. Throws ModelError for malformed JSON, an unknown
// model_type (listing the known ones), a missing or illegal field or option, or a head count that
// `tensor_parallel` does not divide (naming the values that do). A sliding window of n tokens
// counts the query's own in Hugging Face: it becomes window_left = n - 1, window_right = 0.
ModelPlan plan_model(std::string_view config_json, const PlanOptions& options);

// The model_type values that plan_model understands, sorted.
std::vector<std::string> known_model_types();

}  // namespace attnjit
