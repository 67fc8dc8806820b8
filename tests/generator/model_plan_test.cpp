#include "attnjit/model_plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "attnjit/descriptor_validation.hpp"
#include "catch.hpp"

namespace attnjit {
namespace {

bool is_near(double value, double expected) {
  return std::abs(value - expected) <= 1e-12 * std::abs(expected);
}

PlanOptions decode_only(int tensor_parallel = 1) {
  PlanOptions options;
  options.tensor_parallel = tensor_parallel;
  options.phases = {Phase::decode};
  return options;
}

std::vector<int> from_to(int first, int last) {
  std::vector<int> layers(static_cast<std::size_t>(last - first + 1));
  std::iota(layers.begin(), layers.end(), first);
  return layers;
}

// A small Llama with `more` fields, as JSON: `"name": value, …`.
std::string llama_with(const std::string& more) {
  return R"({"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 512,
             "num_attention_heads": 8, "num_key_value_heads": 2)" +
         (more.empty() ? "" : ", " + more) + "}";
}

std::string with_type(const std::string& model_type, const std::string& more) {
  return R"({"model_type": ")" + model_type + R"(", "num_hidden_layers": 4,
             "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64)" +
         (more.empty() ? "" : ", " + more) + "}";
}

const std::string small_mla =
    R"("num_hidden_layers": 2, "num_attention_heads": 16, "kv_lora_rank": 512,
       "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})";
const std::string small_v3 = R"({"model_type": "deepseek_v3", )" + small_mla;

std::string reason_of(const PlannedDescriptor& planned, const std::string& field) {
  for (const AxisReason& reason : planned.reasons) {
    if (reason.field == field) {
      return reason.value + ": " + reason.reason;
    }
  }
  return "";
}

}  // namespace

TEST_CASE("a grouped model decodes and prefills over the paged cache") {
  const ModelPlan plan = plan_model(llama_with(""), PlanOptions{});
  CHECK(plan.model_type == "llama");
  CHECK(plan.num_layers == 4);
  REQUIRE(plan.planned.size() == 2);
  const AttentionDescriptor& decode = plan.planned[0].descriptor;
  CHECK(plan.planned[0].phase == Phase::decode);
  CHECK(decode.operation == Operation::decode);
  CHECK(decode.kv_layout == KvLayout::paged);
  CHECK(decode.num_q_heads == 8);
  CHECK(decode.num_kv_heads == 2);
  CHECK(decode.head_dim_qk == 64);
  CHECK(decode.head_dim_v == 64);
  CHECK(decode.max_seqlen_q == 1);
  CHECK(decode.mask == MaskKind::causal);
  CHECK(decode.window_left == -1);
  CHECK(decode.value_source == ValueSource::separate);
  CHECK(decode.returns_lse);
  CHECK(is_near(plan.planned[0].softmax_scale, 0.125));
  const AttentionDescriptor& prefill = plan.planned[1].descriptor;
  CHECK(plan.planned[1].phase == Phase::prefill);
  CHECK(prefill.operation == Operation::prefill_kvcache);
  CHECK(prefill.kv_layout == KvLayout::paged);
  CHECK(prefill.page_size == 64);
  CHECK(prefill.max_seqlen_q == 0);
  CHECK(plan.planned[1].layers == from_to(0, 3));
  CHECK(plan.unread_fields.empty());
}

TEST_CASE("MLA decodes absorbed and prefills projected up") {
  const ModelPlan plan = plan_model(small_v3, PlanOptions{});
  REQUIRE(plan.planned.size() == 2);
  const AttentionDescriptor& decode = plan.planned[0].descriptor;
  CHECK(decode.operation == Operation::decode);
  CHECK(decode.head_dim_qk == 576);
  CHECK(decode.head_dim_v == 512);
  CHECK(decode.num_kv_heads == 1);
  CHECK(decode.value_source == ValueSource::prefix_of_k);
  const AttentionDescriptor& prefill = plan.planned[1].descriptor;
  CHECK(prefill.operation == Operation::prefill);
  CHECK(prefill.head_dim_qk == 192);
  CHECK(prefill.head_dim_v == 128);
  CHECK(prefill.num_kv_heads == 16);
  CHECK(prefill.kv_layout == KvLayout::ragged);
  CHECK(prefill.page_size == 0);
  CHECK(prefill.max_seqlen_q == 0);
  CHECK(is_near(plan.planned[0].softmax_scale, 1 / std::sqrt(192.0)));
}

TEST_CASE("YaRN multiplies the softmax scale of MLA by the square of its mscale") {
  const std::string config =
      R"({"model_type": "deepseek_v2", "rope_scaling": {"type": "yarn", "factor": 40,
          "mscale": 0.707, "mscale_all_dim": 0.707}, )" +
      small_mla;
  // (0.1 * 0.707 * ln 40 + 1)^2 / sqrt(192)
  CHECK(std::abs(plan_model(config, decode_only()).planned[0].softmax_scale - 0.1147213869) < 1e-9);
}

TEST_CASE("token-sparse MLA reads topk rows chosen by an index list") {
  const std::string config =
      R"({"model_type": "deepseek_v32", "index_topk": 2048, "index_n_heads": 64, )" + small_mla;
  const ModelPlan plan = plan_model(config, PlanOptions{});
  REQUIRE(plan.planned.size() == 2);
  const AttentionDescriptor& decode = plan.planned[0].descriptor;
  CHECK(decode.operation == Operation::sparse_mla_decode);
  CHECK(decode.sparsity == Sparsity::token);
  CHECK(decode.topk == 2048);
  CHECK(decode.head_dim_qk == 576);
  CHECK(decode.value_source == ValueSource::prefix_of_k);
  const AttentionDescriptor& prefill = plan.planned[1].descriptor;
  CHECK(prefill.operation == Operation::sparse_mla_prefill);
  CHECK(prefill.topk == 2048);
  CHECK(prefill.kv_layout == KvLayout::ragged);
  CHECK(plan.unread_fields.empty());
}

TEST_CASE("tensor parallelism shares the query heads and keeps at least one kv head") {
  for (const auto& [ranks, q_heads, kv_heads] :
       std::vector<std::array<int, 3>>{{1, 8, 2}, {2, 4, 1}, {4, 2, 1}, {8, 1, 1}}) {
    const AttentionDescriptor descriptor =
        plan_model(llama_with(""), decode_only(ranks)).planned[0].descriptor;
    CHECK(descriptor.num_q_heads == q_heads);
    CHECK(descriptor.num_kv_heads == kv_heads);
  }
  const PlannedDescriptor mla = plan_model(small_v3, decode_only(8)).planned[0];
  CHECK(mla.descriptor.num_q_heads == 2);
  CHECK(mla.descriptor.num_kv_heads == 1);
  CHECK(reason_of(mla, "num_q_heads") == "2: num_attention_heads 16 / tp 8");
}

TEST_CASE("a sliding window counts the token itself in config.json and not in the descriptor") {
  const ModelPlan plan =
      plan_model(with_type("mistral", R"("sliding_window": 4096)"), decode_only());
  REQUIRE(plan.planned.size() == 1);
  CHECK(plan.planned[0].descriptor.mask == MaskKind::sliding_window);
  CHECK(plan.planned[0].descriptor.window_left == 4095);
  CHECK(plan.planned[0].descriptor.window_right == 0);
  const ModelPlan self_only =
      plan_model(with_type("mistral", R"("sliding_window": 1)"), decode_only());
  CHECK(self_only.planned[0].descriptor.window_left == 0);
}

TEST_CASE("a window that no position can leave is no window") {
  const ModelPlan plan =
      plan_model(with_type("phi3", R"("sliding_window": 4096, "max_position_embeddings": 4096)"),
                 decode_only());
  CHECK(plan.planned[0].descriptor.mask == MaskKind::causal);
  CHECK(plan.planned[0].descriptor.window_left == -1);
  const ModelPlan shorter =
      plan_model(with_type("phi3", R"("sliding_window": 4095, "max_position_embeddings": 4096)"),
                 decode_only());
  CHECK(shorter.planned[0].descriptor.window_left == 4094);
}

TEST_CASE("null switches a window off and absence means the class default") {
  const auto mask_of = [](const std::string& more) {
    return plan_model(with_type("mistral", more), decode_only()).planned[0].descriptor;
  };
  CHECK(mask_of(R"("sliding_window": null)").mask == MaskKind::causal);
  CHECK(mask_of("").window_left == 4095);
}

TEST_CASE("Qwen windows the layers from max_window_layers on and only if asked to") {
  const std::string off = R"("use_sliding_window": false, "sliding_window": 100)";
  CHECK(plan_model(with_type("qwen2", off), decode_only()).planned.size() == 1);
  const ModelPlan on = plan_model(
      with_type("qwen2",
                R"("use_sliding_window": true, "sliding_window": 100, "max_window_layers": 3)"),
      decode_only());
  REQUIRE(on.planned.size() == 2);
  CHECK(on.planned[0].layers == from_to(0, 2));
  CHECK(on.planned[1].layers == from_to(3, 3));
  CHECK(on.planned[1].descriptor.window_left == 99);
}

TEST_CASE("layer_types decides layer by layer and equal layers are merged") {
  const ModelPlan plan = plan_model(
      with_type("gemma3_text", R"("query_pre_attn_scalar": 64, "sliding_window": 10, "layer_types":
          ["full_attention", "sliding_attention", "sliding_attention", "full_attention"])"),
      PlanOptions{});
  REQUIRE(plan.planned.size() == 4);
  CHECK(plan.planned[0].layers == std::vector<int>{0, 3});
  CHECK(plan.planned[0].descriptor.mask == MaskKind::causal);
  CHECK(plan.planned[1].layers == std::vector<int>{0, 3});
  CHECK(plan.planned[1].phase == Phase::prefill);
  CHECK(plan.planned[2].layers == std::vector<int>{1, 2});
  CHECK(plan.planned[2].descriptor.window_left == 9);
}

TEST_CASE("layers of linear attention are listed apart") {
  const ModelPlan plan = plan_model(
      R"({"model_type": "qwen3_next", "num_hidden_layers": 8, "num_attention_heads": 16,
          "num_key_value_heads": 2, "head_dim": 256, "full_attention_interval": 4,
          "linear_num_key_heads": 16})",
      decode_only());
  REQUIRE(plan.planned.size() == 1);
  CHECK(plan.planned[0].layers == std::vector<int>{3, 7});
  CHECK(plan.layers_without_attention == std::vector<int>{0, 1, 2, 4, 5, 6});
  CHECK(plan.unread_fields.empty());
}

TEST_CASE("Nemotron-H has attention where its pattern has a star") {
  const ModelPlan plan = plan_model(
      R"({"model_type": "nemotron_h", "num_hidden_layers": 5, "num_attention_heads": 64,
          "num_key_value_heads": 8,
          "attention_head_dim": 128, "hybrid_override_pattern": "M-*E*"})",
      decode_only());
  REQUIRE(plan.planned.size() == 1);
  CHECK(plan.planned[0].layers == std::vector<int>{2, 4});
  CHECK(plan.planned[0].descriptor.head_dim_qk == 128);
}

TEST_CASE("a searched Nemotron has its own kv heads per layer or no attention at all") {
  const std::string config =
      R"({"model_type": "nemotron-nas", "num_hidden_layers": 3, "num_attention_heads": 64,
          "hidden_size": 8192, "block_configs": [
            {"attention": {"n_heads_in_group": 8, "no_op": false}},
            {"attention": {"n_heads_in_group": null, "no_op": true}},
            {"attention": {"n_heads_in_group": 16, "replace_with_linear": false}}]})";
  const ModelPlan plan = plan_model(config, decode_only(2));
  REQUIRE(plan.planned.size() == 2);
  CHECK(plan.planned[0].descriptor.num_kv_heads == 4);
  CHECK(plan.planned[1].descriptor.num_kv_heads == 2);
  CHECK(plan.layers_without_attention == std::vector<int>{1});
  // On 8 ranks both keep one kv head and so share a kernel.
  const ModelPlan shared = plan_model(config, decode_only(8));
  REQUIRE(shared.planned.size() == 1);
  CHECK(shared.planned[0].layers == std::vector<int>{0, 2});
}

TEST_CASE("the scale is the one the family defines") {
  const auto scale_of = [](const std::string& config) {
    return plan_model(config, decode_only()).planned[0].softmax_scale;
  };
  CHECK(is_near(scale_of(with_type("granite", R"("attention_multiplier": 0.0078125)")), 1.0 / 128));
  CHECK(is_near(scale_of(with_type("gemma2", R"("query_pre_attn_scalar": 144)")), 1.0 / 12));
  CHECK(is_near(scale_of(with_type("llama", "")), 1.0 / 8));
}

TEST_CASE("soft capping carries its cap as a run-time value") {
  const PlannedDescriptor planned =
      plan_model(
          with_type("gemma2", R"("query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0)"),
          decode_only())
          .planned[0];
  CHECK(planned.descriptor.score_modifier == ScoreModifier::softcap);
  CHECK(planned.softcap == 50.0);
  CHECK(reason_of(planned, "softcap") == "50: attn_logit_softcapping");
}

TEST_CASE("an fp8 cache brings scales for what is read from the cache and nothing else") {
  PlanOptions options;
  options.dtype_kv = DataType::fp8_e4m3;
  const ModelPlan dense = plan_model(small_v3, options);
  CHECK(dense.planned[0].descriptor.dtype_kv == DataType::fp8_e4m3);
  CHECK(dense.planned[0].descriptor.scales_kv == ScaleGrain::per_tensor);
  CHECK(dense.planned[1].descriptor.dtype_kv == DataType::bf16);
  CHECK(dense.planned[1].descriptor.scales_kv == ScaleGrain::none);
  const ModelPlan sparse =
      plan_model(R"({"model_type": "deepseek_v32", "index_topk": 2048, )" + small_mla, options);
  CHECK(sparse.planned[0].descriptor.dtype_kv == DataType::fp8_e4m3);
  CHECK(sparse.planned[0].descriptor.kv_encoding == KvEncoding::fp8_656);
  CHECK(sparse.planned[0].descriptor.scales_kv == ScaleGrain::none);
  CHECK(sparse.planned[1].descriptor.kv_encoding == KvEncoding::plain);
  CHECK(sparse.planned[1].descriptor.dtype_kv == DataType::bf16);
}

TEST_CASE("over an fp8 cache the planned prefill is served, decode refused by the cache's type") {
  PlanOptions options;
  options.dtype_kv = DataType::fp8_e4m3;
  const ModelPlan plan = plan_model(llama_with(""), options);
  REQUIRE(plan.planned.size() == 2);
  const AttentionDescriptor& prefill = plan.planned[1].descriptor;
  CHECK(prefill.operation == Operation::prefill_kvcache);
  CHECK(prefill.dtype_kv == DataType::fp8_e4m3);
  CHECK(prefill.scales_kv == ScaleGrain::per_tensor);
  CHECK_NOTHROW(validate(prefill));
  const std::vector<Violation> refused =
      find_violations(plan.planned[0].descriptor, support_rules());
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].field == "dtype_kv");
  CHECK(refused[0].fix.find("prefill_kvcache") != std::string::npos);
}

TEST_CASE("every planned call of an fp8 cache is legal") {
  for (const DataType type : {DataType::fp8_e4m3, DataType::fp8_e5m2}) {
    PlanOptions options;
    options.dtype_kv = type;
    for (const std::string& config :
         {llama_with(""), small_v3,
          R"({"model_type": "deepseek_v32", "index_topk": 2048, )" + small_mla}) {
      for (const PlannedDescriptor& planned : plan_model(config, options).planned) {
        INFO(to_string(planned.descriptor.operation));
        CHECK(find_violations(planned.descriptor, legality_rules()).empty());
      }
    }
  }
}

TEST_CASE("options reach the descriptor and a phase asked for twice is planned once") {
  PlanOptions options;
  options.dtype = DataType::fp16;
  options.dtype_kv = DataType::fp16;
  options.page_size = 16;
  options.max_seqlen_q = 4;
  options.phases = {Phase::decode, Phase::decode};
  const ModelPlan plan = plan_model(llama_with(""), options);
  REQUIRE(plan.planned.size() == 1);
  CHECK(plan.planned[0].layers == from_to(0, 3));
  CHECK(plan.planned[0].descriptor.dtype_out == DataType::fp16);
  CHECK(plan.planned[0].descriptor.page_size == 16);
  CHECK(plan.planned[0].descriptor.max_seqlen_q == 4);
}

TEST_CASE("every axis that decides a kernel comes with a reason") {
  for (const std::string& config : {llama_with(""), small_v3}) {
    for (const PlannedDescriptor& planned : plan_model(config, PlanOptions{}).planned) {
      for (const char* field :
           {"operation", "dtype_q", "dtype_kv", "dtype_out", "head_dim_qk", "head_dim_v",
            "num_q_heads", "num_kv_heads", "max_seqlen_q", "kv_layout", "page_size", "value_source",
            "mask", "window_left", "score_modifier", "has_sinks", "returns_lse", "softmax_scale"}) {
        INFO(field);
        CHECK(reason_of(planned, field) != "");
      }
    }
  }
}

TEST_CASE("the known model types are sorted and distinct") {
  const std::vector<std::string> types = known_model_types();
  CHECK(std::is_sorted(types.begin(), types.end()));
  CHECK(std::adjacent_find(types.begin(), types.end()) == types.end());
  CHECK(std::find(types.begin(), types.end(), "deepseek_v3") != types.end());
}

}  // namespace attnjit
