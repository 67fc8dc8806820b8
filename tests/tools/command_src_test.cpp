#include <string>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string source_of(const std::string& arguments) {
  const CommandOutput output = run_attnjit("src " + arguments);
  INFO(output.err);
  REQUIRE(output.exit_code == 0);
  CHECK(output.err.empty());
  return output.out;
}

}  // namespace

TEST_CASE("the source of a descriptor is the attention kernel with all its headers") {
  const std::string text = source_of("'{\"head_dim_qk\": 64, \"head_dim_v\": 64}' --arch sm_90a");
  CHECK(holds(text, "// Target: sm_90a\n"));
  CHECK(holds(text, "constexpr int head_dim_qk = 64;"));
  CHECK(holds(text, "// ---- device/"));
  const TemporaryDirectory directory;
  const std::string path = directory.write("call.json", R"({"head_dim_qk": 64, "head_dim_v": 64})");
  CHECK(source_of("'" + path + "' --arch sm_90a") == text);
}

TEST_CASE("a stage is a part of the flat source") {
  const std::string flat = source_of("'{}' --arch sm_90a");
  const std::string rendered = source_of("'{}' --arch sm_90a --stage rendered");
  const std::string config = source_of("'{}' --arch sm_90a --stage config");
  CHECK(flat.starts_with(rendered));
  CHECK(rendered.size() < flat.size());
  CHECK(holds(flat, config));
  CHECK(!holds(rendered, config));
  CHECK(config.starts_with("// The constants of one paged_decode_sm80 kernel.\n"));
}

TEST_CASE("each kernel of an operation has its source") {
  CHECK(holds(source_of("'{}' --kernel combine --stage config"), "one combine_splits kernel"));
  CHECK(holds(source_of("'{}' --kernel schedule --stage config"), "one schedule_decode kernel"));
}

TEST_CASE("the source of a model's layer is that of its descriptor") {
  const TemporaryDirectory directory;
  const json plan = json::parse(run_attnjit("plan deepseek-v3 --tp 8 --phases decode --json").out);
  const std::string path =
      directory.write("call.json", plan.at("planned").at(0).at("descriptor").dump());
  const std::string expected = source_of("'" + path + "' --arch h200");
  CHECK(source_of("deepseek-v3 --tp 8 --layer 60 --phase decode --arch h200") == expected);
  CHECK(source_of("deepseek-v3 --tp 8 --arch h200") == expected);
}

TEST_CASE("a model whose layers differ needs the layer and a layer must exist") {
  const CommandOutput unset = run_attnjit("src gemma-3-27b");
  CHECK(unset.exit_code == 2);
  CHECK(holds(unset.err, "2 different descriptors"));
  CHECK(holds(unset.err, "pass --layer"));
  CHECK(holds(unset.err, "5, 11, 17, "));
  CHECK(holds(source_of("gemma-3-27b --layer 5 --stage config"), "head_dim_qk = 128"));
  const CommandOutput unknown = run_attnjit("src deepseek-v3 --layer 61");
  CHECK(unknown.exit_code == 2);
  CHECK(holds(unknown.err, "layer = 61"));
  CHECK(holds(unknown.err, "0-60"));
}

TEST_CASE("a source as JSON holds kernel, config and text") {
  const json document = json::parse(source_of("'{}' --arch sm_80 --json"));
  CHECK(document.at("schema") == 1);
  CHECK(document.at("command") == "src");
  CHECK(document.at("kernel") == "paged_decode_sm80");
  CHECK(document.at("arch") == "sm_80");
  CHECK(document.at("stage") == "flat");
  CHECK(document.at("config").at("head_dim_qk") == 128);
  CHECK(document.at("text") == source_of("'{}' --arch sm_80"));
}

TEST_CASE("what has no source ends with a code and a message that tell why") {
  const TemporaryDirectory cache;
  const std::string at_cache = " --cache-dir '" + cache.path().string() + "'";
  const struct {
    std::string arguments;
    int exit_code;
    std::string part;
  } cases[] = {
      {"nonsense", 2, "neither a preset"},
      {"deepsek-v3", 2, "near ones are deepseek-v3"},
      {"./no/such/file.json", 2, "cannot be read"},
      {"0123456789ab" + at_cache, 2, "no kernel in the cache"},
      {"0123456789ab --arch sm_80" + at_cache, 2, "--arch was given with a key"},
      {"0123456789ab --layer 1" + at_cache, 2, "--layer was given with a key"},
      {"nonsense --layer 1", 2, "neither a preset"},
      {"'{}' --phase decode", 2, "--phase was given with a descriptor"},
      {"'{}' --arch sm_80,sm_90a", 2, "for one target"},
      {"'{}' --stage text", 2, "--stage"},
      {"'{}' --kernel main", 2, "--kernel"},
      {"'{\"no_field\": 1}'", 3, "no_field"},
      {"'{'", 3, "JSON"},
      {"'{\"operation\": \"sparse_mla_decode\", \"sparsity\": \"token\", \"topk\": 64}'", 3,
       "num_kv_heads = 8: must be 1 for the token-sparse operations"},
      {"deepseek-v3 --phase prefill --kernel attention", 2, "this operation has only prefill"},
  };
  for (const auto& [arguments, exit_code, part] : cases) {
    INFO(arguments);
    const CommandOutput output = run_attnjit("src " + arguments);
    INFO(output.err);
    CHECK(output.exit_code == exit_code);
    CHECK(output.out.empty());
    CHECK(holds(output.err, part));
  }
}

}  // namespace attnjit
