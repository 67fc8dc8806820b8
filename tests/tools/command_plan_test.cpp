#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
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

json plan_as_json(const std::string& arguments) {
  const CommandOutput output = run_attnjit("plan " + arguments + " --json");
  INFO(output.err);
  REQUIRE(output.exit_code == 0);
  CHECK(output.err.empty());
  CHECK(std::count(output.out.begin(), output.out.end(), '\n') == 1);
  return json::parse(output.out);
}

}  // namespace

TEST_CASE("attnjit tells its version and its help and succeeds") {
  const CommandOutput version = run_attnjit("--version");
  CHECK(version.exit_code == 0);
  CHECK(holds(version.out, "attnjit 0."));
  const CommandOutput help = run_attnjit("plan --help");
  CHECK(help.exit_code == 0);
  CHECK(holds(help.out, "--kv-dtype"));
}

TEST_CASE("wrong usage ends with 2 and an explanation on standard error") {
  for (const char* arguments :
       {"", "nonsense", "plan", "plan deepseek-v3 --tp 0", "plan deepseek-v3 --tp many",
        "plan deepseek-v3 --dtype int32", "plan deepseek-v3 --kv-dtype fp32",
        "plan deepseek-v3 --page 0", "plan deepseek-v3 --page 512",
        "plan deepseek-v3 --max-seqlen-q -1", "plan deepseek-v3 --phases training",
        "plan deepseek-v3 --unknown", "plan no-such-model", "plan ./no/such/config.json"}) {
    INFO(arguments);
    const CommandOutput output = run_attnjit(arguments);
    CHECK(output.exit_code == 2);
    CHECK(output.out.empty());
    CHECK(!output.err.empty());
  }
}

TEST_CASE("a name that is near nothing is told without names") {
  for (const std::string name : {"1", "x", "zz", "qqqqqqqqqq"}) {
    INFO(name);
    const CommandOutput output = run_attnjit("explain " + name);
    CHECK(output.exit_code == 2);
    CHECK(!holds(output.err, "near ones"));
  }
}

TEST_CASE("an unknown preset names the near ones") {
  const CommandOutput output = run_attnjit("plan deepsek-v3");
  CHECK(output.exit_code == 2);
  CHECK(holds(output.err, "near ones are deepseek-v3, "));
  CHECK(holds(run_attnjit("plan maverick").err, "near ones are llama-4-maverick"));
}

TEST_CASE("a model that cannot be planned ends with 3") {
  const TemporaryDirectory directory;
  const CommandOutput malformed = run_attnjit("plan " + directory.write("bad.json", "{"));
  CHECK(malformed.exit_code == 3);
  CHECK(holds(malformed.err, "not JSON"));
  const CommandOutput unknown =
      run_attnjit("plan " + directory.write("mamba.json", R"({"model_type": "mamba"})"));
  CHECK(unknown.exit_code == 3);
  CHECK(holds(unknown.err, "known are"));
  const CommandOutput parallel = run_attnjit("plan deepseek-v3 --tp 7");
  CHECK(parallel.exit_code == 3);
  CHECK(holds(parallel.err, "use one of 1, 2, 4, 8"));
}

TEST_CASE("a file that holds no model is named in the message") {
  const TemporaryDirectory directory;
  for (const char* text : {"", "no JSON", "[]", "{}"}) {
    const std::string path = directory.write("some.json", text);
    const CommandOutput output = run_attnjit("plan " + path);
    CHECK(output.exit_code == 3);
    CHECK(holds(output.err, path));
  }
  const std::string path = directory.write("call.json", "");
  CHECK(holds(run_attnjit("src " + path).err, path));
}

TEST_CASE("what is no regular file or too large is refused by path, never waited for") {
  const TemporaryDirectory directory;
  const std::string fifo = (directory.path() / "fifo.json").string();
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const std::string folder = (directory.path() / "folder").string();
  std::filesystem::create_directories(folder + "/config.json");
  const std::string large = directory.write("large.json", "");
  std::filesystem::resize_file(large, std::uintmax_t{8} << 30);
  for (const std::string command : {"plan ", "src ", "warm --arch sm_80 "}) {
    for (const std::string& path : {fifo, folder, std::string("/dev/zero")}) {
      const CommandOutput output = run_attnjit(command + path);
      CHECK(output.exit_code == 2);
      CHECK(holds(output.err, path));
      CHECK(holds(output.err, "must be a regular file"));
    }
    const CommandOutput output = run_attnjit(command + large);
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, large + ": must be at most 64 MiB; fix: "));
  }
}

TEST_CASE("a file that nests without end is refused by every command that reads it") {
  const TemporaryDirectory directory;
  std::string nested = "{\"model_type\": \"llama\", \"a\": ";
  const std::string model = directory.write("model.json", nested + std::string(300'000, '['));
  std::string objects;
  for (int level = 0; level < 300'000; ++level) {
    objects += "{\"a\":";
  }
  const std::string descriptor =
      directory.write("call.json", objects + "1" + std::string(300'000, '}'));
  for (const std::string command : {"plan ", "src "}) {
    CHECK(run_attnjit(command + model).exit_code == 3);
    const CommandOutput output = run_attnjit(command + descriptor);
    CHECK(output.exit_code == 3);
    CHECK(holds(output.err, "nested too deeply"));
  }
}

TEST_CASE("a plan is shown with layers and reasons") {
  const CommandOutput output = run_attnjit("plan deepseek-v3 --tp 8");
  CHECK(output.exit_code == 0);
  CHECK(output.err.empty());
  CHECK(holds(output.out, "deepseek-v3: deepseek_v3, 61 layers, tp 8: 2 descriptors"));
  CHECK(holds(output.out, "61 of the layers: 0-60"));
  CHECK(holds(output.out, "kv_lora_rank 512 + qk_rope_head_dim 64"));
  CHECK_FALSE(holds(output.out, "not served yet"));
  CHECK(holds(run_attnjit("plan gemma-2-2b --phases decode").out,
              "not served yet: score_modifier = softcap"));
}

TEST_CASE("a plan as JSON holds every descriptor and the options it was made for") {
  const json plan = plan_as_json(
      "deepseek-v3 --tp 8 --dtype fp16 --kv-dtype fp16 --page 32 --max-seqlen-q 2 "
      "--batch-invariant --phases decode");
  CHECK(plan.at("schema") == 1);
  CHECK(plan.at("model") == "deepseek-v3");
  CHECK(plan.at("num_layers") == 61);
  CHECK(plan.at("options").at("tensor_parallel") == 8);
  CHECK(plan.at("options").at("phases") == json::array({"decode"}));
  REQUIRE(plan.at("planned").size() == 1);
  const json& planned = plan.at("planned").at(0);
  CHECK(planned.at("descriptor").at("head_dim_qk") == 576);
  CHECK(planned.at("descriptor").at("dtype_q") == "fp16");
  CHECK(planned.at("descriptor").at("page_size") == 32);
  CHECK(planned.at("descriptor").at("max_seqlen_q") == 2);
  CHECK(planned.at("descriptor").at("batch_invariant") == true);
  CHECK(plan.at("options").at("batch_invariant") == true);
  CHECK(planned.at("layers").size() == 61);
  CHECK(planned.at("not_served").empty());
}

TEST_CASE("the phases are planned in the order of the command line") {
  const json plan = plan_as_json("llama-3.1-8b --phases prefill,decode");
  REQUIRE(plan.at("planned").size() == 2);
  CHECK(plan.at("planned").at(0).at("phase") == "prefill");
  CHECK(plan.at("planned").at(1).at("phase") == "decode");
}

TEST_CASE("a config.json is read from a path or from the directory that holds it") {
  const TemporaryDirectory directory;
  const std::string path = directory.write(
      "config.json", R"({"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 8,
                         "head_dim": 64, "sliding_window": 100})");
  for (const std::string& model : {path, directory.path().string()}) {
    const json plan = plan_as_json(model);
    CHECK(plan.at("num_layers") == 1);
    CHECK(plan.at("unread_fields") == json::array({"sliding_window"}));
  }
  CHECK(holds(run_attnjit("plan " + path).out, "were not understood: sliding_window"));
}

TEST_CASE("the presets are listed with their sources") {
  const CommandOutput listed = run_attnjit("models");
  CHECK(listed.exit_code == 0);
  CHECK(std::count(listed.out.begin(), listed.out.end(), '\n') >= 30);
  const json models = json::parse(run_attnjit("models --json").out);
  CHECK(models.at("schema") == 1);
  CHECK(models.at("models").size() >= 30);
  for (const json& model : models.at("models")) {
    CHECK(!model.at("source").get<std::string>().empty());
  }
}

TEST_CASE("output that cannot be written is a failure") {
  const CommandOutput output = run_attnjit("models --json", "/dev/full");
  CHECK(output.exit_code == 1);
  CHECK(holds(output.err, "cannot write"));
}

}  // namespace attnjit
