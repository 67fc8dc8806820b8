// What `verify --against` says of a document that is no plan.
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("verify refuses a member of a plan that is none, by its place, value, rule and fix") {
  const TemporaryDirectory scratch;
  const json kernel = {{"name", "a"}, {"arch", "sm_90a"}, {"key", std::string(32, 'a')}};
  const auto with = [](json object, const std::string& name, const json& value) {
    object[name] = value;
    return object;
  };
  const std::pair<json, std::string> wrong[] = {
      {{{"kernels", 3}}, "kernels = 3: must be a list"},
      {{{"kernels", {kernel, 5}}}, "kernels[1] = 5: must be an object"},
      {{{"kernels", {json::object()}}}, "kernels[0].name is missing: must be a text"},
      {{{"kernels", {with(kernel, "name", {1})}}}, "kernels[0].name = [1]: must be a text"},
      {{{"kernels", {kernel, with(kernel, "arch", nullptr)}}},
       "kernels[1].arch = null: must be a text"},
      {{{"kernels", {with(kernel, "key", 7)}}}, "kernels[0].key = 7: must be a text"},
      {{{"kernels", {with(kernel, "key", "abc")}}}, "kernels[0].key = \"abc\": must be 32 hex"},
      {{{"planned", json::object()}}, "planned = {}: must be a list"},
      {{{"planned", {1}}}, "planned[0] = 1: must be an object"},
      {{{"planned", {{{"descriptor", "x"}}}}}, "planned[0].descriptor = \"x\": must be an object"},
      {{{"planned", {{{"descriptor", {{"page_size", "x"}}}}}}},
       "planned[0].descriptor: page_size = \"x\""},
  };
  for (const auto& [document, message] : wrong) {
    const std::string plan = scratch.write("plan.json", document.dump());
    const CommandOutput output = run_attnjit(fmt::format(
        "verify --against '{}' --cache-dir '{}'", plan, (scratch.path() / "cache").string()));
    INFO(output.err);
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, fmt::format("--against = {}: {}", plan, message)));
    CHECK(holds(output.err, "; fix: "));
    CHECK(!holds(output.err, "json.exception"));
  }
}

TEST_CASE("verify refuses targets where nothing asks for them") {
  const TemporaryDirectory scratch;
  const std::string warmed = scratch.write("warm.json", R"({"kernels": []})");
  for (const std::string& command :
       {std::string("verify --arch sm_80"), "verify --arch sm_80 --against '" + warmed + "'"}) {
    const CommandOutput output =
        run_attnjit(command + " --cache-dir '" + scratch.path().string() + "'");
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, "--arch was given with "));
  }
}

}  // namespace attnjit
