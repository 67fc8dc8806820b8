// What is refused in a config.json, and what is reported as not understood.
#include <string>
#include <vector>

#include "attnjit/model_plan.hpp"
#include "catch.hpp"

namespace attnjit {
namespace {

std::string llama(const std::string& heads, const std::string& more = "") {
  return R"({"model_type": "llama", "num_hidden_layers": 2, "head_dim": 64, )"
         R"("num_key_value_heads": 2, "num_attention_heads": )" +
         heads + (more.empty() ? "" : ", " + more) + "}";
}

// The message of the ModelError, "" if there was none.
std::string error_of(const std::string& config, const PlanOptions& options = {}) {
  try {
    plan_model(config, options);
  } catch (const ModelError& error) {
    return error.what();
  }
  return "";
}

bool holds(const std::string& text, const std::string& part) {
  INFO("in: " << text);
  INFO("looked for: " << part);
  const bool is_found = text.find(part) != std::string::npos;
  CHECK(is_found);
  return is_found;
}

std::vector<std::string> unread(const std::string& config) {
  return plan_model(config, PlanOptions{}).unread_fields;
}

}  // namespace

TEST_CASE("what is not a JSON object is refused") {
  holds(error_of("{\"model_type\": "), "not JSON");
  holds(error_of(""), "not JSON");
  holds(error_of("[1, 2]"), "must be a JSON object");
  holds(error_of("{}"), "model_type is missing");
  holds(error_of(R"({"model_type": 3})"), "model_type = 3: must be a string");
  holds(error_of(R"({"model_type": "llama", "text_config": []})"), "text_config = []");
}

TEST_CASE("deep nesting is refused, not followed") {
  const std::string brackets(300'000, '[');
  holds(error_of(brackets), "config.json is nested too deeply: must be at most");
  holds(error_of(R"({"model_type": "llama", "rope_scaling": {"factor": )" + brackets),
        "rope_scaling.factor is nested too deeply: must be at most");
  std::string objects = "{\"model_type\": \"llama\"";
  for (int level = 0; level < 300'000; ++level) {
    objects += ", \"a\": {\"b\": 1";
  }
  holds(error_of(objects + std::string(300'001, '}')), "fix: give the file as published");
}

TEST_CASE("a key that is given twice is refused by its path, in an inner object too") {
  holds(error_of(llama("8", R"("head_dim": 128)")),
        "head_dim is given more than once: must be given once; fix: ");
  const std::string both =
      error_of(llama("8", R"("head_dim": 64, "rope_scaling": {"factor": 8, "factor": 8})"));
  holds(both, "head_dim is given more than once");
  holds(both, "rope_scaling.factor is given more than once");
  CHECK(error_of(llama("8", R"("a": {"factor": 1}, "b": {"factor": 1}, "c": [{"d": 1}, {"d": 1}])"))
            .empty());
}

TEST_CASE("a message shows neither control characters nor a value of any length") {
  const std::string terminal_codes = error_of(R"({"model_type": "\u001b[2J\u009b\u007fx"})");
  holds(terminal_codes, "model_type = \"\\x1b[2J\\xc2\\x9b\\x7fx\"");
  const std::string long_text(1'000'000, 'x');
  CHECK(error_of(R"({"model_type": ")" + long_text + "\"}").size() < 2000);
  CHECK(error_of(R"({"model_type": ")" + long_text).size() < 2000);
  CHECK(error_of(R"({")" + long_text + R"(": 1, ")" + long_text + "\": 1}").size() < 2000);
  CHECK(error_of(llama("8", "\"layer_types\": [\"" + long_text + "\", \"x\"]")).size() < 2000);
  // 26 characters of three bytes and the quotation mark before them: the cut falls within the 27th.
  std::string euros;
  for (int count = 0; count < 100; ++count) {
    euros += "\u20ac";
  }
  const std::string cut = error_of(llama("\"" + euros + "\""));
  holds(cut, "\u20ac\u2026: must be an integer");
}

TEST_CASE("an unknown architecture is refused with the list of the known ones") {
  const std::string message = error_of(R"({"model_type": "mamba"})");
  holds(message, "model_type = \"mamba\"");
  holds(message, "deepseek_v3");
  holds(message, "qwen3_moe");
}

TEST_CASE("a missing field is named with its path") {
  holds(error_of(R"({"model_type": "llama", "num_hidden_layers": 2})"),
        "num_attention_heads is missing");
  holds(error_of(R"({"model_type": "llama4", "text_config": {"num_hidden_layers": 2}})"),
        "text_config.num_attention_heads is missing");
  holds(error_of(R"({"model_type": "deepseek_v32", "num_hidden_layers": 2})"),
        "index_topk is missing");
  holds(error_of(R"({"model_type": "granite", "num_hidden_layers": 2, "num_attention_heads": 2,
                     "head_dim": 64})"),
        "attention_multiplier = missing");
}

TEST_CASE("a wrong type is refused with what was given and what is allowed") {
  holds(error_of(llama("\"eight\"")), "num_attention_heads = \"eight\": must be an integer from 1");
  holds(error_of(llama("8.0")), "num_attention_heads = 8.0: must be an integer");
  holds(error_of(llama("true")), "must be an integer");
  holds(error_of(llama("[8]")), "must be an integer");
  holds(error_of(R"({"model_type": "qwen2", "num_hidden_layers": 2, "num_attention_heads": 2,
      "num_key_value_heads": 2, "head_dim": 64, "use_sliding_window": "yes"})"),
        "use_sliding_window = \"yes\": must be true or false");
  holds(error_of(llama("8", R"("layer_types": "full_attention")")), "must be an array");
  holds(error_of(llama("8", R"("layer_types": [1, 2])")), "must be an array of strings");
}

TEST_CASE("negative zero and huge numbers are refused") {
  for (const char* heads : {"-8", "0", "2147483648", "1048577", "9223372036854775808",
                            "18446744073709551615", "-9223372036854775808", "1e300"}) {
    holds(error_of(llama(heads)), "num_attention_heads = ");
  }
  holds(error_of(llama("1e999")), "not JSON");
  holds(error_of(R"({"model_type": "llama", "num_hidden_layers": 2000000000,
      "num_attention_heads": 8})"),
        "num_hidden_layers = 2000000000: must be an integer from 1 to 4096");
}

TEST_CASE("heads that do not fit together are refused") {
  holds(error_of(llama("9")), "num_key_value_heads = 2: must divide num_attention_heads 9");
  holds(error_of(R"({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 100,
      "num_attention_heads": 8})"),
        "hidden_size = 100: not a multiple of num_attention_heads 8");
}

TEST_CASE("layer_types must name every layer and only kinds that are understood") {
  holds(error_of(llama("8", R"("layer_types": ["full_attention"])")), "has 1 entries");
  holds(error_of(llama("8", R"("layer_types": ["full_attention", "deltanet"])")), "\"deltanet\"");
  holds(error_of(llama("8", R"("layer_types": ["full_attention", "sliding_attention"])")),
        "sliding_window is missing");
}

TEST_CASE("a tensor parallelism that cannot share the heads names those that can") {
  PlanOptions options;
  options.tensor_parallel = 3;
  holds(error_of(llama("8"), options), "use one of 1, 2, 4, 8");
  options.tensor_parallel = 16;
  holds(error_of(llama("8"), options), "tensor_parallel = 16");
  // 6 ranks would share 12 query heads, but neither share nor repeat 4 kv heads.
  options.tensor_parallel = 6;
  holds(error_of(R"({"model_type": "llama", "num_hidden_layers": 1, "head_dim": 64,
      "num_attention_heads": 12, "num_key_value_heads": 4})",
                 options),
        "multiple of num_key_value_heads 4; fix: use one of 1, 2, 4, 12");
}

TEST_CASE("options out of range are refused") {
  const auto error_with = [](auto&& change) {
    PlanOptions options;
    change(options);
    return error_of(llama("8"), options);
  };
  holds(error_with([](PlanOptions& o) { o.tensor_parallel = 0; }), "tensor_parallel = 0");
  holds(error_with([](PlanOptions& o) { o.page_size = -1; }), "page_size = -1");
  holds(error_with([](PlanOptions& o) { o.max_seqlen_q = 0; }), "max_seqlen_q = 0");
  holds(error_with([](PlanOptions& o) { o.phases.clear(); }), "phases is empty");
  holds(error_with([](PlanOptions& o) { o.dtype = DataType::int32; }), "dtype = int32");
  holds(error_with([](PlanOptions& o) { o.dtype_kv = DataType::fp32; }), "dtype_kv = fp32");
}

TEST_CASE("fields that look like attention and were not read are reported") {
  CHECK(unread(llama("8", R"("sliding_window": 4096)")) ==
        std::vector<std::string>{"sliding_window"});
  CHECK(unread(llama("8", R"("attention_twist": 1, "my_softcap": 30.0, "vocab_size": 9)")) ==
        std::vector<std::string>{"attention_twist", "my_softcap"});
  CHECK(unread(llama("8", R"("quantization_config": {"kv_cache_scheme": {"num_bits": 8}})")) ==
        std::vector<std::string>{"quantization_config.kv_cache_scheme"});
}

TEST_CASE("a field that asks for other than causal attention is reported") {
  CHECK(unread(llama("8", R"("is_causal": false)")) == std::vector<std::string>{"is_causal"});
  CHECK(unread(llama("8", R"("causal": false, "sub": {"causal": false})")) ==
        std::vector<std::string>{"causal", "sub.causal"});
  CHECK(unread(llama("8", R"("position_bias": true)")) ==
        std::vector<std::string>{"position_bias"});
  CHECK(unread(llama("8", R"("is_causal": null, "position_bias": false)")).empty());
}

TEST_CASE("a torch_dtype that is none of the known ones is reported") {
  for (const char* dtype : {"\"float64\"", "\"int8\"", "\"\"", "16", "false", "[]"}) {
    CHECK(unread(llama("8", std::string("\"torch_dtype\": ") + dtype)) ==
          std::vector<std::string>{"torch_dtype"});
    CHECK(unread(llama("8", std::string("\"dtype\": ") + dtype)) ==
          std::vector<std::string>{"dtype"});
  }
  for (const char* dtype : {"\"float16\"", "\"bfloat16\"", "\"float32\"", "\"auto\"", "null"}) {
    CHECK(unread(llama("8", std::string("\"torch_dtype\": ") + dtype)).empty());
  }
}

TEST_CASE("fields that concern no kernel or are switched off are not reported") {
  CHECK(unread(llama("8", R"("attention_dropout": 0.1, "attention_bias": true, "rope_theta": 1e4,
      "rope_scaling": {"factor": 8.0}, "sliding_window": null, "use_alibi": false,
      "pruned_heads": {}, "vocab_size": 128256)"))
            .empty());
}

TEST_CASE("a multimodal model is planned by its language model alone") {
  const std::string config = R"({"model_type": "gemma3", "odd_mask": 1,
      "text_config": {"num_hidden_layers": 6, "strange_window": 3},
      "vision_config": {"num_attention_heads": 16, "window_size": 14}})";
  const ModelPlan plan = plan_model(config, PlanOptions{});
  CHECK(plan.model_type == "gemma3_text");
  CHECK(plan.num_layers == 6);
  CHECK(plan.planned[0].descriptor.num_q_heads == 8);  // Gemma3TextConfig's defaults
  CHECK(plan.planned[0].descriptor.num_kv_heads == 4);
  CHECK(plan.planned[0].descriptor.head_dim_qk == 256);
  CHECK(plan.unread_fields == std::vector<std::string>{"odd_mask", "text_config.strange_window"});
}

}  // namespace attnjit
