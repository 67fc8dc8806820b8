// What `attnjit warm` does without a compiler: what it refuses, and how it ends.
#include <string>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string warm(const TemporaryDirectory& cache, const std::string& arguments) {
  return "warm " + arguments + " --cache-dir '" + cache.path().string() + "'";
}

}  // namespace

TEST_CASE("warming an unknown preset or target is wrong usage that names what there is") {
  const TemporaryDirectory cache;
  const CommandOutput preset = run_attnjit(warm(cache, "deepsek-v3"));
  CHECK(preset.exit_code == 2);
  CHECK(preset.out.empty());
  CHECK(holds(preset.err, "near ones are deepseek-v3"));
  const CommandOutput target = run_attnjit(warm(cache, "deepseek-v3 --arch sm_90a,sm_1"));
  CHECK(target.exit_code == 2);
  CHECK(target.out.empty());
  CHECK(holds(target.err, "arch = sm_1"));
  CHECK(holds(target.err, "h200 (sm_90a)"));
}

TEST_CASE("a model whose descriptors are all refused ends with 3 and every reason") {
  const TemporaryDirectory cache;
  const CommandOutput output =
      run_attnjit(warm(cache, "llama-3.1-8b --dtype fp16 --kv-dtype fp8_e4m3"));
  CHECK(output.exit_code == 3);
  CHECK(holds(output.out, "refused: decode, layers 0-31, "));
  CHECK(holds(output.out, "refused: prefill, layers 0-31, "));
  CHECK(holds(output.out, "dtype_kv = fp8_e4m3: "));
  CHECK(holds(output.out, "; fix: "));
  CHECK(holds(output.out, "no kernels; "));
  CHECK(holds(output.out, " refused\n"));
}

TEST_CASE("a refusal as JSON holds field, value, rule and fix") {
  const TemporaryDirectory cache;
  const CommandOutput output =
      run_attnjit(warm(cache, "deepseek-v3 --tp 8 --kv-dtype fp8_e4m3 --phases decode --json"));
  CHECK(output.exit_code == 3);
  const nlohmann::json document = nlohmann::json::parse(output.out);
  CHECK(document.at("exit_code") == 3);
  CHECK(document.at("kernels").empty());
  CHECK(document.at("counts").at("refused") == 1);
  const nlohmann::json& refused = document.at("refused").at(0);
  CHECK(refused.at("phase") == "decode");
  CHECK(refused.at("layers").size() == 61);
  CHECK(refused.at("descriptor").at("dtype_kv") == "fp8_e4m3");
  const nlohmann::json& violation = refused.at("violations").at(0);
  CHECK(violation.at("field") == "dtype_kv");
  CHECK(violation.at("value") == "fp8_e4m3");
  CHECK(!violation.at("rule").get<std::string>().empty());
  CHECK(!violation.at("fix").get<std::string>().empty());
}

TEST_CASE("warming without NVRTC ends with 5 and says once where it was looked for") {
  const TemporaryDirectory cache;
  const CommandOutput output =
      run_attnjit(warm(cache, "deepseek-v3 --tp 8 --arch sm_90a --nvrtc ./no/such/file"));
  CHECK(output.exit_code == 5);
  CHECK(holds(output.out, "5 kernels: 5 failed"));
  const std::string reason = "the option nvrtc, ./no/such/file: no such file or directory";
  CHECK(holds(output.err, reason));
  CHECK(output.err.find(reason) == output.err.rfind(reason));
}

TEST_CASE("warming from a directory that is none of templates ends with 1") {
  const TemporaryDirectory cache;
  const TemporaryDirectory templates;
  const CommandOutput output = run_attnjit(
      warm(cache, "deepseek-v3 --tp 8 --templates '" + templates.path().string() + "'"));
  CHECK(output.exit_code == 1);
  CHECK(holds(output.err, templates.path().string()));
}

TEST_CASE("options of warm that mean nothing are refused by name, with the fix") {
  const TemporaryDirectory cache;
  const std::string merge = "'{\"operation\":\"merge_states\"}'";
  for (const auto& [arguments, told] :
       {std::pair<std::string, std::string>{"", "what = nothing: "},
        {"deepseek-v3 -j 0", "--jobs = \"0\": "},
        {"deepseek-v3 -j 2x", "--jobs = \"2x\": "},
        {"deepseek-v3 --jobs 1025", "--jobs = \"1025\": "},
        {"deepseek-v3 --timeout nan", "nan is not a finite decimal number"},
        {"deepseek-v3 --timeout 0", "--timeout"},
        {"deepseek-v3 --progress pie", "--progress"},
        {"deepseek-v3 --memory-limit -1", "--memory-limit"},
        {merge + " --tp 2", "--tp was given with descriptors or traces only"},
        {"--from-trace /dev/null --arch sm_90a", "--arch was given with a trace"}}) {
    INFO(arguments);
    const CommandOutput output = run_attnjit(warm(cache, arguments));
    CHECK(output.exit_code == 2);
    CHECK(output.out.empty());
    CHECK(holds(output.err, told));
  }
}

TEST_CASE("a model's name may follow a list of targets") {
  const TemporaryDirectory cache;
  CHECK(run_attnjit(warm(cache, "--arch sm_90a --phases decode deepsek-v3")).exit_code == 2);
  CHECK(
      holds(run_attnjit(warm(cache, "--arch sm_90a deepsek-v3")).err, "near ones are deepseek-v3"));
}

}  // namespace attnjit
