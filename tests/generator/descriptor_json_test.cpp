#include "attnjit/descriptor_json.hpp"

#include <string>

#include <fmt/format.h>

#include "attnjit/descriptor_validation.hpp"
#include "catch.hpp"
#include "field_perturbation.hpp"

namespace {

using namespace attnjit;

// What reading `json` is refused with, "" if it is not.
std::string refusal(std::string_view json) {
  try {
    descriptor_from_json(json);
  } catch (const DescriptorError& error) {
    return error.what();
  }
  return "";
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TEST_CASE("every field of a descriptor shows in its JSON and survives the way back") {
  const AttentionDescriptor original;
  for (const std::string& name : test::field_names(original)) {
    const AttentionDescriptor changed = test::with_another(original, name);
    CHECK(changed != original);
    CHECK(to_json(changed) != to_json(original));
    CHECK(contains(to_json(changed), "\"" + name + "\":"));
    CHECK(descriptor_from_json(to_json(changed)) == changed);
  }
}

TEST_CASE("the JSON of a descriptor is one line with the fields in declaration order") {
  const std::string json = to_json(AttentionDescriptor{});
  CHECK(json.starts_with("{\"operation\":\"decode\",\"dtype_q\":\"bf16\",\"dtype_kv\":\"bf16\","));
  CHECK(json.ends_with("\"scales_rope\":\"none\",\"scales_out\":\"none\",\"scale_block\":0}"));
  CHECK(!contains(json, "\n"));
}

TEST_CASE("an expression of several lines survives the way through one line of JSON") {
  AttentionDescriptor descriptor;
  descriptor.mask_expression = "q >= k &&  // \\ \"causal\"\n\tk % 2 == 0";
  CHECK(!contains(to_json(descriptor), "\n"));
  CHECK(descriptor_from_json(to_json(descriptor)) == descriptor);
  descriptor.mask_expression = "\xff";
  CHECK(contains(to_json(descriptor), "\"mask_expression\":\"\xef\xbf\xbd\""));
}

TEST_CASE("absent fields keep their defaults") {
  AttentionDescriptor expected;
  expected.num_q_heads = 16;
  CHECK(descriptor_from_json("{}") == AttentionDescriptor{});
  CHECK(descriptor_from_json(" {\"num_q_heads\": 16}\n") == expected);
}

TEST_CASE("an unknown field is refused by name, with the names that exist") {
  const std::string message = refusal("{\"head_dim\": 128}");
  CHECK(contains(message, "head_dim = 128: is not a field of a descriptor"));
  CHECK(contains(message, "use one of operation, dtype_q,"));
  CHECK(contains(message, "scale_block"));
}

TEST_CASE("of many unknown fields the first are named, and all are counted") {
  std::string json = "{";
  for (int field = 0; field < 100000; ++field) {
    json += fmt::format("{}\"f{:05}\":1", field == 0 ? "" : ",", field);
  }
  const std::string message = refusal(json + "}");
  CHECK(message.size() < 32000);
  CHECK(contains(message, "f00019 = 1: is not a field of a descriptor"));
  CHECK(contains(message, "descriptor = 100000 unknown fields: the first 20 are told above"));
}

TEST_CASE("a value of the wrong type is refused by field and value") {
  CHECK(
      contains(refusal("{\"head_dim_qk\": \"128\"}"), "head_dim_qk = \"128\": must be an integer"));
  CHECK(contains(refusal("{\"head_dim_qk\": 128.5}"), "head_dim_qk = 128.5: must be an integer"));
  CHECK(contains(refusal("{\"head_dim_qk\": true}"), "head_dim_qk = true: must be an integer"));
  CHECK(contains(refusal("{\"head_dim_qk\": null}"), "head_dim_qk = null: must be an integer"));
  CHECK(contains(refusal("{\"head_dim_qk\": [1]}"), "head_dim_qk = [1]: must be an integer"));
  CHECK(contains(refusal("{\"has_sinks\": 1}"), "has_sinks = 1: must be true or false"));
  CHECK(contains(refusal("{\"mask_expression\": 1}"), "mask_expression = 1: must be a text"));
  CHECK(contains(refusal("{\"mask\": 1}"), "mask = 1: must be one of none, causal"));
  CHECK(contains(refusal("{\"mask\": {}}"), "mask = {}: must be one of none, causal"));
}

TEST_CASE("an unknown enumerator is refused with the ones that exist") {
  const std::string message = refusal("{\"dtype_q\": \"float8\"}");
  CHECK(contains(message, "dtype_q = \"float8\": must be one of bf16, fp16, fp32, fp8_e4m3"));
  CHECK(contains(refusal("{\"dtype_q\": \"\"}"), "dtype_q = \"\": must be one of"));
  CHECK(contains(refusal("{\"dtype_q\": \"BF16\"}"), "dtype_q = \"BF16\": must be one of"));
}

TEST_CASE("a number that does not fit in an int is refused, never wrapped") {
  for (const char* number :
       {"2147483648", "4294967424", "-2147483648", "-4294967168", "9223372036854775807",
        "18446744073709551615", "18446744073709551744", "1e400", "-1e400"}) {
    const std::string message = refusal(std::string("{\"head_dim_qk\": ") + number + "}");
    CHECK(contains(message, "head_dim_qk"));
    CHECK(contains(message, "31 bits"));
  }
  CHECK(descriptor_from_json("{\"head_dim_qk\": 2147483647}").head_dim_qk == 2147483647);
  CHECK(descriptor_from_json("{\"window_left\": -2147483647}").window_left == -2147483647);
}

TEST_CASE("text that is not one JSON object is refused") {
  for (const char* text : {"", " ", "{", "nonsense", "{} {}", "{\"mask\": }", "{\"mask\"}",
                           "{\"mask\": \"\xff\"}", "{'mask': 'none'}"}) {
    CHECK(contains(refusal(text), "descriptor: is not JSON: "));
  }
  CHECK(contains(refusal("[]"), "descriptor = array: must be a JSON object"));
  CHECK(contains(refusal("null"), "descriptor = null: must be a JSON object"));
  CHECK(contains(refusal("7"), "descriptor = number: must be a JSON object"));
  CHECK(contains(refusal("\"decode\""), "descriptor = string: must be a JSON object"));
}

TEST_CASE("a field that is given twice is refused even if both values agree") {
  CHECK(contains(refusal("{\"topk\": 0, \"mask\": \"none\", \"topk\": 0}"),
                 "topk: is given more than once"));
}

TEST_CASE("deep nesting is refused, not followed") {
  const std::string brackets(1'000'000, '[');
  CHECK(contains(refusal("{\"topk\": " + brackets), "topk: is nested too deeply"));
  CHECK(contains(refusal(brackets), "descriptor: is nested too deeply"));
}

TEST_CASE("everything that is wrong with a descriptor's JSON is listed at once") {
  const std::string message =
      refusal("{\"mask\": \"all\", \"topk\": 0, \"topk\": \"x\", \"heads\": 1, \"has_sinks\": 0}");
  CHECK(contains(message, "mask = \"all\""));
  CHECK(contains(message, "topk: is given more than once"));
  CHECK(contains(message, "topk = \"x\""));
  CHECK(contains(message, "heads = 1"));
  CHECK(contains(message, "has_sinks = 0"));
}

}  // namespace
